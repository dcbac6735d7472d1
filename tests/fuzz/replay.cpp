// Runs a fuzzer's function over the files of its corpus without libFuzzer: each file whole, cut short at every length,
// and with every byte changed in turn (a stride keeps long files quick).
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  std::size_t files = 0, runs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(entry.path(), std::ios::binary);
      std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
      const auto run = [&](std::size_t size) { LLVMFuzzerTestOneInput(bytes.data(), size), ++runs; };
      run(bytes.size());
      const std::size_t stride = 1 + bytes.size() / 500;
      for (std::size_t at = 0; at < bytes.size(); at += stride) {
        run(at);
        const std::uint8_t was = bytes[at];
        for (const std::uint8_t now : {std::uint8_t(was + 1), std::uint8_t(was ^ 0x80), std::uint8_t('9')}) {
          bytes[at] = now;
          run(bytes.size());
        }
        bytes[at] = was;
      }
      ++files;
    }
  }
  std::printf("%zu files, %zu runs\n", files, runs);
  return files ? 0 : 1;
}
