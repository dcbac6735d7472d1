// What a tokenizer is made of, as plain data: what tokenizer.json or SentencePiece's tokenizer.model say.
//
//   TokenizerParts parts = parse_tokenizer(json, "tokenizer.json");
//   parts.normalizers.push_back({.kind = Normalizer::Kind::nfc});
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stretto/tokenize/added_tokens.h"

namespace stretto {

inline constexpr std::string_view metaspace = "\u2581";  // how vocabularies that know no blanks write them

// A change of the text before it is cut.
struct Normalizer {
  enum class Kind : std::uint8_t { nfc, nfd, nfkc, nfkd, lowercase, strip, prepend, replace };
  Kind kind = Kind::nfc;
  std::string pattern = {};        // replace: this ...
  bool expression = false;         // ... as it stands, or what it matches
  std::string text = {};           // replace, prepend: what is put there
  bool left = true, right = true;  // strip
  bool operator==(const Normalizer&) const = default;
};

// A pre-tokenizer: cuts a piece where its pattern matches, or puts other characters for blanks.
struct CutStep {
  enum class Matches : std::uint8_t { isolated, removed, with_previous, with_next, contiguous };
  enum class Prepend : std::uint8_t { never, first, always };
  std::string pattern = {};  // none: one of the two below
  Matches matches = Matches::isolated;
  bool invert = false;               // what lies between matches counts as matches
  bool prefix_space = false;         // a blank before a piece that has none
  std::string space = {};            // for every blank
  Prepend prepend = Prepend::never;  // `space` before a piece that does not begin with it; first: of the text
  bool operator==(const CutStep&) const = default;
};

// From tokens to text, where tokens are not in byte-level characters.
struct DecodeRules {
  std::vector<std::pair<std::string, std::string>> replace = {};  // in every token
  bool bytes = false;                                             // <0x0A> is a byte
  std::string strip = {};                                         // from the whole text ...
  int strip_start = 0, strip_stop = 0;                            // ... so often at most
  std::optional<std::string> unknown = {};                        // what the unknown token is shown as
  std::string drop_in_first = {};                                 // in the first token, wherever it stands
  std::string drop_at_start = {};                                 // once, where the first token begins with it
  bool drop_until_text = false;                                   // and again, until there is text
  bool operator==(const DecodeRules&) const = default;
};

// How SentencePiece's own library prepares a text.
struct SentencePieceRules {
  std::string characters = {};  // its compiled map of characters; empty: none
  bool dummy_prefix = true, remove_extra_blanks = true, blank_as_suffix = false;
  std::vector<std::string> user_defined = {};  // stay as they are
  bool operator==(const SentencePieceRules&) const = default;
};

struct TokenizerParts {
  // bytes: BPE over bytes, tokens in byte-level characters ("Ġthe"); bpe, unigram: over characters ("▁the").
  enum class Model : std::uint8_t { bytes, bpe, unigram };
  Model model = Model::bytes;
  std::vector<std::pair<std::string, std::int32_t>> vocab;
  std::vector<double> scores;  // of unigram, in the order of `vocab`; of SentencePiece's BPE, instead of merges
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  std::vector<AddedToken> added;
  std::vector<Normalizer> normalizers;
  std::optional<SentencePieceRules> sentencepiece;  // instead of normalizers and steps
  std::vector<CutStep> steps;
  bool ignore_merges = false;               // a piece that is in the vocabulary is one token, whatever the merges say
  std::optional<std::int32_t> unknown;      // for a character that is not in the vocabulary
  bool fuse_unknown = false;                // one for several in a row
  bool byte_fallback = false;               // rather its bytes, <0xE2>
  std::vector<std::int32_t> unmatched;      // tokens of `vocab` that no text is: <s>
  std::vector<std::int32_t> before, after;  // what encode() puts around a text when asked
  DecodeRules decode;
  bool operator==(const TokenizerParts&) const = default;
};

}  // namespace stretto
