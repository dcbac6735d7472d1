#include "stretto/tokenize/train_bpe.h"

#include <algorithm>
#include <array>
#include <queue>
#include <set>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/inner/byte_level.h"
#include "stretto/tokenize/inner/bytes.h"
#include "stretto/tokenize/inner/tables.h"

namespace stretto {
namespace {

constexpr i64 most_vocab = 1 << 24;
// Of a text in parts: bytes behind a piece without which it may become another; a word that is none.
constexpr std::size_t looked_ahead = 8, longest_word = 64 << 20;

using Pair = std::pair<std::int32_t, std::int32_t>;
u64 key_of(Pair p) { return u64(std::uint32_t(p.first)) << 32 | std::uint32_t(p.second); }

struct Candidate {
  i64 count = 0;
  Pair pair;
  bool operator<(const Candidate& o) const { return count != o.count ? count < o.count : pair > o.pair; }
};

class Training {
 public:
  Training(const WordCounts& words, const BpeOptions& options) : options_(options) {
    for (const std::string& s : words.special()) {
      parts_.added.push_back({.text = s, .id = next_id(), .special = true});
      tokens_.push_back(s);
    }
    std::vector<unsigned char> alphabet(256);
    for (unsigned b = 0; b < 256; ++b) alphabet[b] = b;
    std::sort(alphabet.begin(), alphabet.end(),
              [](auto a, auto b) { return byte_level_character(a) < byte_level_character(b); });
    std::array<std::int32_t, 256> byte_id{};
    for (const unsigned char b : alphabet) {
      byte_id[b] = next_id();
      const char byte = char(b);
      tokens_.push_back(to_byte_level({&byte, 1}));
    }
    parts_.steps.push_back({.pattern = std::string(words.pattern())});
    for (const auto& [text, count] : words.sorted()) {
      std::vector<std::int32_t>& word = words_.emplace_back();
      for (const char c : text) word.push_back(byte_id[byte_of(c)]);
      counts_.push_back(count);
    }
  }

  TokenizerParts run() {
    count_pairs();
    const i64 merges = options_.vocab - std::ssize(tokens_);
    for (i64 done = 0; done < merges; ++done) {
      const auto best = take_best();
      if (!best) break;
      const std::int32_t id = next_id();
      parts_.merges.emplace_back(tokens_[best->first], tokens_[best->second]);
      tokens_.push_back(parts_.merges.back().first + parts_.merges.back().second);
      refuse_special(tokens_.back());
      merge_everywhere(*best, id);
      if (options_.progress) options_.progress(done + 1, merges);
    }
    for (std::int32_t id = 0; id < next_id(); ++id) parts_.vocab.emplace_back(tokens_[id], id);
    return std::move(parts_);
  }

 private:
  struct Seen {
    i64 count = 0;
    std::vector<std::uint32_t> words;  // in which it may occur; rising, as words are looked at in order
  };

  // Text is cut at special tokens, but bytes are written as other characters in a vocabulary: " the" is "Ġthe" there.
  void refuse_special(const std::string& merged) const {
    for (const AddedToken& t : parts_.added)
      if (t.text == merged)
        throw Error("train-bpe",
                    "the special token '{}' is how the vocabulary writes '{}', which the text made a token",
                    shown(merged), shown(*from_byte_level(merged)))
            .hint("choose another one, such as <|{}|>", shown(merged));
  }

  std::int32_t next_id() const { return tokens_.size(); }

  void change(Pair p, i64 by, std::uint32_t word) {
    Seen& s = pairs_[key_of(p)];
    s.count += by;
    if (by > 0 && (s.words.empty() || s.words.back() != word)) s.words.push_back(word);
  }

  void count_pairs() {
    for (std::uint32_t w = 0; w < words_.size(); ++w)
      for (std::size_t i = 0; i + 1 < words_[w].size(); ++i) change({words_[w][i], words_[w][i + 1]}, counts_[w], w);
    for (const auto& [key, seen] : pairs_)
      queue_.push({seen.count, {std::int32_t(key >> 32), std::int32_t(key & 0xFFFFFFFFu)}});
  }

  // A candidate's count may have fallen since it was queued; one that has risen was queued again.
  std::optional<Pair> take_best() {
    while (!queue_.empty()) {
      Candidate c = queue_.top();
      queue_.pop();
      const i64 now = pairs_[key_of(c.pair)].count;
      if (now == c.count) return now >= std::max<i64>(1, options_.least) ? std::optional(c.pair) : std::nullopt;
      if (now > 0 && now < c.count) queue_.push({now, c.pair});
    }
    return std::nullopt;
  }

  void merge_everywhere(Pair pair, std::int32_t id) {
    const std::vector<std::uint32_t> places = std::move(pairs_[key_of(pair)].words);
    risen_.clear();
    for (const std::uint32_t w : places) merge_in(w, pair, id);
    pairs_.erase(key_of(pair));
    std::sort(risen_.begin(), risen_.end());
    risen_.erase(std::unique(risen_.begin(), risen_.end()), risen_.end());
    for (const Pair& p : risen_)
      if (const auto found = pairs_.find(key_of(p)); found != pairs_.end()) queue_.push({found->second.count, p});
  }

  void merge_in(std::uint32_t w, Pair pair, std::int32_t id) {
    std::vector<std::int32_t>& word = words_[w];
    const i64 count = counts_[w];
    std::size_t to = 0;
    for (std::size_t from = 0; from < word.size(); ++from, ++to) {
      if (from + 1 == word.size() || word[from] != pair.first || word[from + 1] != pair.second) {
        word[to] = word[from];
        continue;
      }
      if (to > 0) {
        change({word[to - 1], pair.first}, -count, w);
        change({word[to - 1], id}, count, w);
        risen_.push_back({word[to - 1], id});
      }
      if (from + 2 < word.size()) {
        change({pair.second, word[from + 2]}, -count, w);
        change({id, word[from + 2]}, count, w);
        risen_.push_back({id, word[from + 2]});
      }
      word[to] = id;
      ++from;
    }
    word.resize(to);
  }

  const BpeOptions& options_;
  TokenizerParts parts_;
  std::vector<std::string> tokens_;  // by id
  std::vector<std::vector<std::int32_t>> words_;
  std::vector<i64> counts_;
  std::unordered_map<u64, Seen> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> risen_;
};

bool is_alphabet(std::string_view text) {
  for (unsigned b = 0; b < 256; ++b)
    if (const char byte = char(b); to_byte_level({&byte, 1}) == text) return true;
  return false;
}

// A tokenizer of which only the pieces are wanted.
TokenizerParts parts_to_cut(std::string_view pattern, const std::vector<std::string>& special) {
  TokenizerParts parts;
  parts.vocab = {{"a", 0}};
  parts.steps = {{.pattern = std::string(pattern)}};
  std::set<std::string_view> seen;
  for (const std::string& s : special) {
    if (s.empty() || !seen.insert(s).second)
      throw Error("train-bpe", "the special token '{}' is {}", shown(s), s.empty() ? "empty" : "there twice")
          .hint("leave it out");
    if (is_alphabet(s))
      throw Error("train-bpe", "the special token '{}' is a character that stands for a byte in every vocabulary",
                  shown(s))
          .hint("choose a longer one, such as <|{}|>", shown(s));
    parts.added.push_back({.text = s, .id = std::int32_t(seen.size()), .special = true});
  }
  return parts;
}

}  // namespace

WordCounts::WordCounts(std::string_view pattern, std::vector<std::string> special)
    : pattern_(pattern), special_(std::move(special)), cut_(parts_to_cut(pattern, special_)) {}

void WordCounts::add(std::string_view text, bool last, const std::function<void(std::size_t)>& progress) {
  if (!held_.empty()) held_ += text;
  const std::string_view all = held_.empty() ? text : held_;
  std::size_t unsure = last ? 0 : looked_ahead, done = 0, told = 0;
  for (const std::string& s : special_) unsure = std::max(unsure, last ? 0 : s.size());
  const auto count = [&](std::string_view piece) {
    const std::size_t end = piece.data() + piece.size() - all.data();
    if (end + unsure > all.size()) return;
    const auto found = counts_.find(piece);
    if (found != counts_.end())
      ++found->second;
    else
      counts_.emplace(piece, 1);
    done = end;
    if (progress && done - told > (1 << 20)) progress(told = done);
  };
  if (last || all.size() > enough_) {
    Encoder encoder(cut_);
    std::vector<AddedTokens::Stretch> parts;
    cut_.tables().added[0].split(all, parts);
    for (const AddedTokens::Stretch& p : parts)
      if (!p.id) encoder.each_piece(p.text, count);
  }
  if (last)
    held_.clear(), enough_ = 0;
  else if (held_.empty())
    held_ = text.substr(done), enough_ = 2 * held_.size();
  else if (done > 0 || held_.size() > enough_)
    held_.erase(0, done), enough_ = 2 * held_.size();  // a long piece is not cut again for every part
  if (held_.size() > longest_word)
    throw Error("train-bpe", "{} of the text are one word", human_bytes(double(held_.size()))).hint("is it text?");
}

std::vector<std::pair<std::string, i64>> WordCounts::sorted() const {
  std::vector<std::pair<std::string, i64>> all(counts_.begin(), counts_.end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return all;
}

void check_vocabulary(i64 vocab, std::size_t special) {
  const i64 least = 256 + special;
  if (vocab >= least && vocab <= most_vocab) return;
  throw Error("train-bpe", "a vocabulary of {} is asked for; {} is the least (256 bytes{}), {} the most", vocab, least,
              special == 0 ? "" : fmt::format(" and {} special token{}", special, special == 1 ? "" : "s"), most_vocab)
      .hint("{} is usual for a small text, 32000 and more for a large one", 4 * least);
}

TokenizerParts train_bpe(const WordCounts& words, const BpeOptions& o) {
  check_vocabulary(o.vocab, words.special().size());
  return Training(words, o).run();
}

}  // namespace stretto
