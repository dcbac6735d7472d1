// A text as SentencePiece's library prepares it: characters by its map, blanks as U+2581.
//
//   SentencePieceText prepare({.dummy_prefix = true}, "tokenizer.model");
//   prepare.apply("two words", true);     // "▁two▁words"
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/tokenize/parts.h"
#include "stretto/tokenize/inner/prefix_tree.h"

namespace stretto {

class SentencePieceText {
 public:
  SentencePieceText() = default;
  SentencePieceText(const SentencePieceRules&, std::string_view where);
  std::string apply(std::string_view text, bool first) const;  // of UTF-8

 private:
  struct Rewritten {
    std::string_view out;
    std::size_t size = 0;  // bytes of the text that it stands for
  };
  Rewritten next(std::string_view text) const;
  std::optional<std::pair<std::uint32_t, std::size_t>> longest(std::string_view text) const;

  SentencePieceRules rules_;
  PrefixTree own_;                    // what the user has defined
  std::vector<std::uint32_t> units_;  // a double array
  std::string targets_;               // of the map, each ends with a zero
};

}  // namespace stretto
