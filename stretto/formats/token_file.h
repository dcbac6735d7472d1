// A token file of any known format, told by its look: an .idx beside it is Megatron's, a magic number is llm.c's, any
// other .bin is nanoGPT's.
//
//   TokenFile file("train.bin");
//   file.tokens().first_outside(50257);
#pragma once
#include <filesystem>
#include <memory>
#include <string_view>
#include <variant>

#include "stretto/formats/llmc_tokens.h"
#include "stretto/formats/megatron_tokens.h"
#include "stretto/formats/nanogpt_tokens.h"

namespace stretto {

enum class TokenFormat { nanogpt, llmc, megatron };

bool looks_like_tokens(const std::filesystem::path& path);  // and not like text

class TokenFile {
 public:
  explicit TokenFile(const std::filesystem::path& path);
  TokenFile(const std::filesystem::path& path, TokenFormat format);  // of this format, whatever it looks like
  TokenSpan tokens() const;                                          // all, in the order of the file
  std::string_view format() const;                                   // "nanoGPT", "llm.c", "Megatron"
  const std::filesystem::path& path() const { return path_; }
  const MegatronTokens* megatron() const { return std::get_if<MegatronTokens>(&file_); }  // for its documents

 private:
  using Any = std::variant<NanogptTokens, LlmcTokens, MegatronTokens>;
  static Any open(const std::filesystem::path& path);
  static Any open(const std::filesystem::path& path, TokenFormat format);
  std::filesystem::path path_;
  Any file_;
};

// A new file for a vocabulary: 16 bits per token when it fits, else 32 where the format has them.
//
//   TokenFileWriter out("train.bin", TokenFormat::nanogpt, 50257);
//   out.write(ids);
//   out.end_document();
//   out.commit();
class TokenFileWriter {
 public:
  TokenFileWriter(const std::filesystem::path& path, TokenFormat format, i64 vocab);
  void write(std::span<const std::int32_t> tokens);
  void end_document();  // only Megatron's files know about documents
  void commit();
  i64 tokens() const { return tokens_; }
  i64 documents() const { return documents_; }

 private:
  std::variant<std::unique_ptr<NanogptWriter>, std::unique_ptr<LlmcWriter>, std::unique_ptr<MegatronWriter>> file_;
  i64 tokens_ = 0, documents_ = 0;
};

}  // namespace stretto
