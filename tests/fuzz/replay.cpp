// Runs a fuzzer's function over the files of its corpus without libFuzzer: each file whole, cut short, with single
// bytes changed, and then a number of random mixtures of them.
//
//   fuzz_csv tests/fuzz/corpus/csv 100000
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> read_all(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> files;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

void run(const Bytes& bytes) { LLVMFuzzerTestOneInput(bytes.data(), bytes.size()); }

void change_each(Bytes bytes) {
  run(bytes);
  const std::size_t stride = 1 + bytes.size() / 500;
  for (std::size_t at = 0; at < bytes.size(); at += stride) {
    run(Bytes(bytes.begin(), bytes.begin() + std::ptrdiff_t(at)));
    const std::uint8_t was = bytes[at];
    for (const std::uint8_t now : {std::uint8_t(was + 1), std::uint8_t(was ^ 0x80), std::uint8_t('9')}) {
      bytes[at] = now;
      run(bytes);
    }
    bytes[at] = was;
  }
}

// A few stretches removed, doubled, taken from another file or changed.
void mix(const std::vector<Bytes>& files, std::mt19937& rng) {
  const auto below = [&](std::size_t n) { return n ? std::size_t(rng() % n) : 0; };
  Bytes bytes = files[below(files.size())];
  for (std::size_t changes = 1 + below(6); changes > 0; --changes) {
    const std::size_t at = below(bytes.size() + 1), length = std::min(bytes.size() - at, 1 + below(16));
    const auto begin = bytes.begin() + std::ptrdiff_t(at), end = begin + std::ptrdiff_t(length);
    const Bytes& other = files[below(files.size())];
    const std::size_t from = below(other.size() + 1), taken = std::min(other.size() - from, 1 + below(16));
    const Bytes insert(other.begin() + std::ptrdiff_t(from), other.begin() + std::ptrdiff_t(from + taken));
    switch (rng() % 4) {
      case 0:
        bytes.erase(begin, end);
        break;
      case 1: {
        const Bytes copy(begin, end);
        bytes.insert(bytes.begin() + std::ptrdiff_t(below(bytes.size() + 1)), copy.begin(), copy.end());
        break;
      }
      case 2:
        bytes.insert(begin, insert.begin(), insert.end());
        break;
      default:
        if (length) bytes[at] = std::uint8_t(rng());
    }
  }
  run(bytes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::vector<Bytes> files = read_all(argv[1]);
  for (const Bytes& file : files) change_each(file);
  const char* asked = std::getenv("STRETTO_LONG");
  const long mixtures = (argc > 2 ? std::atol(argv[2]) : 0) * (asked && *asked == '1' ? 10 : 1);
  std::mt19937 rng(1);
  for (long i = 0; i < mixtures && !files.empty(); ++i) mix(files, rng);
  std::printf("%zu files, %ld mixtures\n", files.size(), mixtures);
  return files.empty() ? 1 : 0;
}
