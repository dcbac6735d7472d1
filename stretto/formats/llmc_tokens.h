// The shards of llm.c: a header of 256 int32 (magic, version, number of tokens), then tokens: uint16 for GPT-2's
// vocabulary, uint32 for Llama 3's.
//
//   LlmcTokens file("shard_000.bin");
//   file.tokens().size();
//   LlmcWriter out("shard_001.bin", LlmcKind::wide);
//   out.write(ids);
//   out.commit();
#pragma once
#include <filesystem>
#include <span>

#include "stretto/formats/atomic_file.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/formats/token_span.h"

namespace stretto {

enum class LlmcKind { narrow, wide };  // 16 and 32 bits per token

class LlmcTokens {
 public:
  explicit LlmcTokens(const std::filesystem::path& path);  // Error for a wrong magic, version or length
  TokenSpan tokens() const;
  static bool recognises(std::span<const std::byte> bytes);  // by its magic

 private:
  MappedFile file_;
  LlmcKind kind_ = LlmcKind::narrow;
};

class LlmcWriter {
 public:
  LlmcWriter(const std::filesystem::path& path, LlmcKind kind);
  void write(std::span<const std::int32_t> tokens);
  void commit();  // writes the number of tokens into the header

 private:
  AtomicFile file_;
  LlmcKind kind_;
  i64 count_ = 0;
};

}  // namespace stretto
