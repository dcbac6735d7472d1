// Learns a byte-level BPE vocabulary from text.
//
//   WordCounts words(gpt2_pattern, {"<|endoftext|>"});
//   words.add(text);                      // or in parts: words.add(begin, false), words.add(rest)
//   TokenizerParts parts = train_bpe(words, {.vocab = 8192});
//   write_file("tokenizer.json", tokenizer_json(parts));
//
// Ids: the special tokens, the 256 bytes in the order of their characters, then one token per merge. Of the pairs that
// are most frequent the one with the smallest ids is merged first, so that the result depends on the text only.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/tokenize/tokenizer.h"

namespace stretto {

// How often every piece occurs.
class WordCounts {
 public:
  // Special tokens are no part of any piece and get the first ids.
  explicit WordCounts(std::string_view pattern, std::vector<std::string> special = {});
  // A text, or its next part, cut anywhere; the pieces are those of the whole.
  void add(std::string_view text, bool last = true, const std::function<void(std::size_t done)>& progress = {});
  std::string_view pattern() const { return pattern_; }
  const std::vector<std::string>& special() const { return special_; }
  // By frequency, then by text: the same for the same text, whatever order it came in.
  std::vector<std::pair<std::string, i64>> sorted() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  std::string pattern_;
  std::vector<std::string> special_;
  Tokenizer cut_;
  std::unordered_map<std::string, i64, Hash, std::equal_to<>> counts_;
  std::string held_;        // the end of what has come of a text: its pieces may become others
  std::size_t enough_ = 0;  // bytes of it, from which on it is cut again
};

struct BpeOptions {
  i64 vocab = 0;  // with the special tokens and the 256 bytes
  i64 least = 2;  // a pair that occurs less often is not merged
  std::function<void(i64 done, i64 of)> progress = {};
};
void check_vocabulary(i64 vocab, std::size_t special);  // throws where it cannot be; counting words takes minutes
// A text with too few different pairs gives a smaller vocabulary.
TokenizerParts train_bpe(const WordCounts&, const BpeOptions&);

}  // namespace stretto
