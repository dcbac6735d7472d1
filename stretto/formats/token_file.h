// A token file of any known format, told by its look: an .idx beside it is Megatron's, a magic number is llm.c's, any
// other .bin is nanoGPT's.
//
//   TokenFile file("train.bin");
//   file.tokens().first_outside(50257);
#pragma once
#include <filesystem>
#include <string_view>
#include <variant>

#include "stretto/formats/llmc_tokens.h"
#include "stretto/formats/megatron_tokens.h"
#include "stretto/formats/nanogpt_tokens.h"

namespace stretto {

class TokenFile {
 public:
  explicit TokenFile(const std::filesystem::path& path);
  TokenSpan tokens() const;         // all, in the order of the file
  std::string_view format() const;  // "nanoGPT", "llm.c", "Megatron"
  const MegatronTokens* megatron() const { return std::get_if<MegatronTokens>(&file_); }  // for its documents

 private:
  using Any = std::variant<NanogptTokens, LlmcTokens, MegatronTokens>;
  static Any open(const std::filesystem::path& path);
  Any file_;
};

}  // namespace stretto
