// A tokenizer ready for use: what TokenizerParts say, as tables. `tokenizer.tables().text_of(262)` is " the".
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/tokenize/added_tokens.h"
#include "stretto/tokenize/inner/character_model.h"
#include "stretto/tokenize/inner/cutter.h"
#include "stretto/tokenize/inner/merges.h"
#include "stretto/tokenize/inner/normalize.h"
#include "stretto/tokenize/inner/sentencepiece_text.h"

namespace stretto {

struct TokenizerTables {
  struct Token {
    std::size_t begin = 0;
    std::uint32_t size = 0;
    bool there = false;
    bool word = false;  // of the model's vocabulary, in byte-level characters: a piece may be it
    bool special = false;
  };
  std::string bytes;  // of all tokens, one after the other
  std::vector<Token> tokens;
  std::unordered_map<std::string_view, std::int32_t> words;
  std::unordered_map<std::string, std::int32_t> added_ids;
  std::array<std::optional<std::int32_t>, 256> byte_ids{};  // none: the vocabulary has no token for this byte
  std::array<AddedTokens, 2> added;                         // looked for one after the other
  Merges merges;
  std::optional<CharacterModel> characters;  // none: tokens are byte-level
  TextNormalizer normalizer;
  std::optional<SentencePieceText> sentencepiece;  // instead of it
  std::vector<PreparedStep> steps;
  DecodeRules decode;
  std::unordered_map<std::int32_t, std::string> first_texts;  // of tokens that read differently as the first of a text
  bool ignore_merges = false;
  std::vector<std::int32_t> before, after;

  bool normalizes() const { return sentencepiece || !normalizer.empty(); }
  std::string normalized(std::string_view text, bool first) const {
    return sentencepiece ? sentencepiece->apply(text, first) : normalizer.apply(text, first);
  }
  i64 vocab() const { return tokens.size(); }
  std::string_view text_of(std::int32_t id) const {
    const Token& t = tokens[id];
    return std::string_view(bytes).substr(t.begin, t.size);
  }
};

}  // namespace stretto
