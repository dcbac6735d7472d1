#include "stretto/formats/token_file.h"

#include "stretto/base/error.h"

namespace stretto {

namespace fs = std::filesystem;

TokenFile::Any TokenFile::open(const fs::path& path) {
  fs::path idx = path, bare_idx = path;
  idx.replace_extension(".idx");
  bare_idx += ".idx";
  if ((path.extension() == ".bin" && fs::exists(idx)) || path.extension() == ".idx" || fs::exists(bare_idx)) {
    MegatronTokens file(path);
    if (!file.contiguous())
      throw Error(path.string(), "has sequences that do not lie one behind the other")
          .hint("build the data set again without gaps");
    return file;
  }
  const MappedFile file(path);  // names a file that is not there
  if (LlmcTokens::recognises(file.bytes())) return LlmcTokens(path);
  if (path.extension() != ".bin")
    throw Error(path.string(), "is no token file")
        .hint("token files are .bin, or .bin with .idx; other files are text");
  return NanogptTokens(path);
}

TokenFile::TokenFile(const fs::path& path) : file_(open(path)) {}

TokenSpan TokenFile::tokens() const {
  return std::visit([](const auto& file) { return file.tokens(); }, file_);
}

std::string_view TokenFile::format() const {
  constexpr std::string_view names[] = {"nanoGPT", "llm.c", "Megatron"};
  return names[file_.index()];
}

}  // namespace stretto
