#include "stretto/tokenize/inner/character_model.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "stretto/base/error.h"
#include "stretto/base/id.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/inner/byte_level.h"
#include "stretto/tokenize/inner/bytes.h"

namespace stretto {
namespace {

using Ids = std::vector<std::int32_t>;
constexpr std::size_t remembered_pairs = 1 << 22;
constexpr double unknown_penalty = 10;
// While BPE by scores is at work a character without a token is its code point above this: two of them may make one.
constexpr std::int32_t first_character_id = 1 << 30;

std::string_view first_character(std::string_view text) { return text.substr(0, character_size(text, 0)); }
std::string_view last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && inside_character(text[at])) --at;
  return text.substr(at);
}

}  // namespace

CharacterModel::CharacterModel(const TokenizerParts& parts, std::string_view where)
    : model_(parts.model),
      scored_(parts.model == TokenizerParts::Model::bpe && !parts.scores.empty()),
      narrow_(parts.sentencepiece.has_value()),
      ignore_merges_(parts.ignore_merges && parts.model == TokenizerParts::Model::bpe),
      fuse_unknown_(parts.fuse_unknown),
      unknown_(parts.unknown),
      meet_(remembered_pairs) {
  if (!parts.scores.empty() && parts.scores.size() != parts.vocab.size())
    throw Error(where, "there are {} scores for {} tokens", parts.scores.size(), parts.vocab.size());
  add_words(parts);
  if (parts.byte_fallback)
    for (const auto& [token, id] : parts.vocab)
      if (const auto byte = byte_of_token(token)) byte_ids_[*byte] = id;
  if (model_ == TokenizerParts::Model::unigram)
    add_scores(parts);
  else if (scored_)
    add_scored_merges(parts);
  else
    add_merges(parts, where);
}

void CharacterModel::add_words(const TokenizerParts& parts) {
  std::vector<std::int32_t> unmatched = parts.unmatched;
  std::sort(unmatched.begin(), unmatched.end());
  words_.reserve(parts.vocab.size());
  for (const auto& [token, id] : parts.vocab) {
    if (token.empty() || std::binary_search(unmatched.begin(), unmatched.end(), id)) continue;
    words_.insert_or_assign(token, id);
    if (token.size() != character_size(token, 0)) continue;
    const std::uint32_t point = code_point(token);
    if (point >= characters_.size()) characters_.resize(point + 1);
    characters_[point] = id;
  }
}

void CharacterModel::add_merges(const TokenizerParts& parts, std::string_view where) {
  const auto id_in = [&](const std::string& token, std::size_t rank) {
    const auto found = words_.find(token);
    if (found == words_.end())
      throw Error(where, "merge {} ('{}' with '{}') needs the token '{}', which is not in the vocabulary", rank,
                  shown(parts.merges[rank].first), shown(parts.merges[rank].second), shown(token));
    return found->second;
  };
  merges_.reserve(parts.merges.size());
  for (std::size_t rank = 0; rank < parts.merges.size(); ++rank) {
    const auto& [left, right] = parts.merges[rank];
    if (left.empty() || right.empty()) throw Error(where, "merge {} has an empty token", rank);
    merges_.add(id_in(left, rank), id_in(right, rank), rank, id_in(left + right, rank));
    meet_[pair_of(code_point(last_character(left)), code_point(first_character(right)))] = true;
  }
}

// Any two neighbours that make a token can merge, those that make the one with the highest score first.
void CharacterModel::add_scored_merges(const TokenizerParts& parts) {
  std::vector<double> levels = parts.scores;
  std::sort(levels.begin(), levels.end(), std::greater<>());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  const auto part = [&](std::string_view text) -> std::optional<std::int32_t> {
    if (const auto found = words_.find(text); found != words_.end()) return found->second;
    if (text.size() == character_size(text, 0)) return first_character_id + code_point(text);
    return std::nullopt;
  };
  for (std::size_t n = 0; n < parts.vocab.size(); ++n) {
    const std::string& token = parts.vocab[n].first;
    const auto word = words_.find(token);
    if (word == words_.end() || word->second != parts.vocab[n].second) continue;
    const auto level = std::lower_bound(levels.begin(), levels.end(), parts.scores[n], std::greater<>());
    may_meet(token);
    for (std::size_t at = character_size(token, 0); at < token.size(); at += character_size(token, at)) {
      const auto left = part(std::string_view(token).substr(0, at)), right = part(std::string_view(token).substr(at));
      if (left && right) merges_.add(*left, *right, level - levels.begin(), word->second);
    }
  }
}

void CharacterModel::add_scores(const TokenizerParts& parts) {
  std::vector<PrefixTree::Entry> entries(words_.begin(), words_.end());
  std::sort(entries.begin(), entries.end());
  tree_ = PrefixTree(entries);
  std::unordered_set<std::string> own;
  if (parts.sentencepiece)
    own.insert(parts.sentencepiece->user_defined.begin(), parts.sentencepiece->user_defined.end());
  double least = std::numeric_limits<double>::max(), most = std::numeric_limits<double>::lowest();
  for (std::size_t n = 0; n < parts.vocab.size(); ++n) {
    const auto& [token, id] = parts.vocab[n];
    if (id >= std::ssize(scores_)) scores_.resize(id + 1);
    scores_[id] = parts.scores[n];
    if (!words_.contains(token)) continue;
    may_meet(token);
    if (own.contains(token)) continue;
    least = std::min(least, parts.scores[n]);
    most = std::max(most, parts.scores[n]);
  }
  for (const auto& [token, id] : parts.vocab)  // so that nothing beats one that the user has named
    if (own.contains(token)) scores_[id] = double(float(token.size()) * float(most)) - 0.1;
  unknown_score_ = least - unknown_penalty;
  if (narrow_) unknown_score_ = float(unknown_score_);
}

void CharacterModel::may_meet(std::string_view token) {
  for (std::size_t at = 0, next = 0; at < token.size(); at = next) {
    next = at + character_size(token, at);
    if (next >= token.size()) return;
    meet_[pair_of(code_point(token.substr(at, next - at)), code_point(first_character(token.substr(next))))] = true;
  }
}

std::size_t CharacterModel::pair_of(std::uint32_t left, std::uint32_t right) {
  const u64 key = (u64(left) << 32 | right) * 0x9E3779B97F4A7C15ull;
  return key >> 42;
}

std::optional<std::int32_t> CharacterModel::character(std::uint32_t point) const {
  return point < characters_.size() ? characters_[point] : std::nullopt;
}

std::optional<std::int32_t> CharacterModel::id_of(std::string_view token) const {
  const auto found = words_.find(token);
  return found == words_.end() ? std::nullopt : std::optional(found->second);
}

// Not beside a character without a token: several of those may become one.
std::size_t CharacterModel::stretch_end(std::string_view piece) const {
  std::size_t at = character_size(piece, 0);
  std::uint32_t before = code_point(piece.substr(0, at));
  while (at < piece.size()) {
    const std::size_t size = character_size(piece, at);
    const std::uint32_t now = code_point(piece.substr(at, size));
    if (!meet_[pair_of(before, now)] && character(before) && character(now)) return at;
    before = now;
    at += size;
  }
  return at;
}

void CharacterModel::one_stretch(std::string_view text, Progress& progress, WordCache& cache, Ids& to) const {
  if (model_ == TokenizerParts::Model::unigram) return unigram(text, progress, to);
  if (cache.find(text, to)) return;
  const std::size_t first = to.size();
  scored_ ? scored_bpe(text, to) : bpe(text, to);
  cache.add(text, std::span(to).subspan(first));
}

void CharacterModel::bpe(std::string_view text, Ids& to) const {
  const std::size_t first = to.size();
  bool unknown = false;  // the last one was
  for (std::size_t at = 0, size = 0; at < text.size(); at += size) {
    size = character_size(text, at);
    const std::string_view one = text.substr(at, size);
    if (const auto id = character(code_point(one))) {
      to.push_back(*id);
      unknown = false;
    } else if (put_bytes(one, to)) {
      unknown = false;
    } else {
      if (!unknown || !fuse_unknown_) put_unknown(one, to);
      unknown = true;
    }
  }
  merges_.apply(to, first);
}

void CharacterModel::scored_bpe(std::string_view text, Ids& to) const {
  Ids ids;
  for (std::size_t at = 0, size = 0; at < text.size(); at += size) {
    size = character_size(text, at);
    const std::uint32_t point = code_point(text.substr(at, size));
    ids.push_back(character(point).value_or(first_character_id + point));
  }
  merges_.apply(ids, 0);
  bool unknown = false;
  for (const std::int32_t id : ids) {
    if (id < first_character_id) {
      to.push_back(id);
      unknown = false;
      continue;
    }
    std::string one;
    append_utf8(one, id - first_character_id);
    if (put_bytes(one, to)) continue;
    if (!unknown || !fuse_unknown_) put_unknown(one, to);
    unknown = true;
  }
}

void CharacterModel::relax(Node& target, double score, std::size_t from, std::optional<std::int32_t> id) const {
  if (narrow_) score = float(score);
  if (target.from && score <= target.score) return;
  target = {.score = score, .from = from, .id = id};
}

// The cut with the highest sum of scores.
void CharacterModel::unigram(std::string_view text, Progress& progress, Ids& to) const {
  std::vector<Node> nodes(text.size() + 1);
  nodes[0].score = progress.score;
  for (std::size_t at = 0, size = 0; at < text.size(); at += size) {
    size = character_size(text, at);
    const double here = nodes[at].score;
    bool whole = false;  // the character alone is a token
    tree_.each(text.substr(at), [&](std::int32_t id, std::size_t length) {
      relax(nodes[at + length], here + scores_[id], at, id);
      whole = whole || length == size;
    });
    if (!whole) relax(nodes[at + size], here + unknown_score_, at, std::nullopt);
  }
  progress.score = nodes.back().score;
  std::vector<std::pair<std::size_t, std::size_t>> way;  // from, to
  for (std::size_t end = text.size(); end > 0; end = *nodes[end].from) way.emplace_back(*nodes[end].from, end);
  for (std::size_t n = way.size(); n-- > 0;) {
    const auto [begin, end] = way[n];
    if (const auto id = nodes[end].id) {
      to.push_back(*id);
      continue;
    }
    std::size_t last = end;  // of those without a token in a row
    while (n > 0 && !nodes[way[n - 1].second].id) last = way[--n].second;
    const std::string_view run = text.substr(begin, last - begin);
    if (!put_bytes(run, to)) put_unknown(run, to);
  }
}

bool CharacterModel::put_bytes(std::string_view text, Ids& to) const {
  if (!std::all_of(text.begin(), text.end(), [&](char c) { return byte_ids_[byte_of(c)].has_value(); })) return false;
  for (const char c : text) to.push_back(*byte_ids_[byte_of(c)]);
  return true;
}

void CharacterModel::put_unknown(std::string_view text, Ids& to) const {
  if (!unknown_)
    throw Error("tokenizer", "the text has '{}', and the vocabulary has no token for it and none for what is unknown",
                shown(text, 20))
        .hint("use a tokenizer that has an unknown token or all 256 bytes");
  to.push_back(*unknown_);
}

void CharacterModel::encode_bad(std::string_view bytes, Ids& to) const {
  if (!put_bytes(bytes, to)) put_unknown(bytes, to);
}

}  // namespace stretto
