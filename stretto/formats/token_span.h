// Tokens as they lie in a mapped file, of whatever integer type.
//
//   NanogptTokens file("train.bin");
//   TokenSpan tokens = file.tokens();
//   std::vector<std::int32_t> window(257);
//   tokens.read(1000, window);
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "stretto/formats/stored_tensor.h"

namespace stretto {

struct TokenSpan {
  FileType type = FileType::U16;
  std::span<const std::byte> bytes;

  i64 size() const { return i64(bytes.size() / size_of(type)); }
  TokenSpan part(i64 begin, i64 count) const;              // Error when it reaches beyond the end
  void read(i64 begin, std::span<std::int32_t> to) const;  // likewise
  std::optional<i64> first_outside(i64 vocabulary) const;  // position of the first token that is not in [0, vocabulary)
  i64 at(i64 position) const;
};

}  // namespace stretto
