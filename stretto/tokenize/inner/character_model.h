// Tokens over characters: BPE with a rule for characters that have no token, and unigram.
//
//   CharacterModel model(parts, "tokenizer.json");
//   model.encode("▁the", ids);
//
// A piece may be a whole book. It is worked on in stretches: no token reaches over a place where two characters meet
// that meet in no token, so cutting there changes nothing.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stretto/tokenize/inner/merges.h"
#include "stretto/tokenize/parts.h"
#include "stretto/tokenize/inner/prefix_tree.h"
#include "stretto/tokenize/inner/word_cache.h"

namespace stretto {

class CharacterModel {
 public:
  // Of unigram: how good the best cut of the text so far is. Later stretches of a piece go on from it.
  struct Progress {
    double score = 0;
  };

  CharacterModel(const TokenizerParts&, std::string_view where);
  // Appends; `drain` is called between stretches with how many bytes are done.
  template <class Drain>
  void encode(std::string_view piece, WordCache& cache, std::vector<std::int32_t>& to, const Drain& drain) const {
    if (ignore_merges_)
      if (const auto whole = words_.find(piece); whole != words_.end())
        return to.push_back(whole->second), drain(piece);
    Progress progress;
    while (!piece.empty()) {
      const std::string_view stretch = piece.substr(0, stretch_end(piece));
      piece.remove_prefix(stretch.size());
      one_stretch(stretch, progress, cache, to);
      drain(stretch);
    }
  }
  // Bytes that are no UTF-8.
  void encode_bad(std::string_view bytes, std::vector<std::int32_t>& to) const;
  std::optional<std::int32_t> id_of(std::string_view token) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  struct Node {  // the best way to the place before a byte
    double score = 0;
    std::optional<std::size_t> from = {};
    std::optional<std::int32_t> id = {};  // none: a character without a token
  };

  void add_words(const TokenizerParts&);
  void add_merges(const TokenizerParts&, std::string_view where);
  void add_scored_merges(const TokenizerParts&);
  void add_scores(const TokenizerParts&);
  void may_meet(std::string_view token);
  static std::size_t pair_of(std::uint32_t left, std::uint32_t right);
  std::optional<std::int32_t> character(std::uint32_t point) const;
  std::size_t stretch_end(std::string_view piece) const;
  void one_stretch(std::string_view, Progress&, WordCache&, std::vector<std::int32_t>& to) const;
  void bpe(std::string_view, std::vector<std::int32_t>& to) const;
  void scored_bpe(std::string_view, std::vector<std::int32_t>& to) const;
  void unigram(std::string_view, Progress&, std::vector<std::int32_t>& to) const;
  void relax(Node& target, double score, std::size_t from, std::optional<std::int32_t> id) const;
  bool put_bytes(std::string_view text, std::vector<std::int32_t>& to) const;
  void put_unknown(std::string_view text, std::vector<std::int32_t>& to) const;

  TokenizerParts::Model model_;
  bool scored_ = false;  // BPE by scores
  bool narrow_ = false;  // scores are added as float, as SentencePiece does
  bool ignore_merges_ = false, fuse_unknown_ = false;
  std::optional<std::int32_t> unknown_;
  std::array<std::optional<std::int32_t>, 256> byte_ids_{};
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> words_;
  std::vector<std::optional<std::int32_t>> characters_;  // by code point, as far as there are any
  std::vector<bool> meet_;                               // pairs of characters, hashed: too many are harmless
  Merges merges_;
  PrefixTree tree_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0;
};

}  // namespace stretto
