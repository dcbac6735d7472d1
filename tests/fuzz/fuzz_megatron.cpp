// Any bytes as a Megatron index beside a .bin of 64 bytes: every sequence lies inside it, or an Error.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "stretto/base/error.h"
#include "stretto/formats/megatron_tokens.h"

namespace {

// The two files, which go away at the end.
struct Pair {
  const std::string prefix =
      (std::filesystem::temp_directory_path() / ("fuzz-megatron-" + std::to_string(::getpid()))).string();
  ~Pair() {
    std::remove((prefix + ".bin").c_str());
    std::remove((prefix + ".idx").c_str());
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stretto;
  static const Pair pair;
  const std::string& prefix = pair.prefix;
  const auto put = [](const std::string& path, const void* bytes, std::size_t count) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (!file) __builtin_trap();
    if (count > 0) std::fwrite(bytes, 1, count, file);
    std::fclose(file);
  };
  static const char tokens[64] = {};
  put(prefix + ".bin", tokens, sizeof tokens);
  put(prefix + ".idx", data, size);
  try {
    const MegatronTokens file(prefix);
    for (i64 s = 0; s < file.sequences(); ++s)
      if (file.sequence(s).bytes.size() > sizeof tokens) __builtin_trap();
    if (file.document_begin(file.documents()) != file.sequences()) __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}
