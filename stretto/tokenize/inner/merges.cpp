#include "stretto/tokenize/inner/merges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <queue>
#include <utility>

namespace stretto {
namespace {

constexpr std::size_t short_word = 48;  // up to here looking at every pair again is faster than a queue

std::uint64_t key_of(std::int32_t left, std::int32_t right) {
  return std::uint64_t(std::uint32_t(left)) << 32 | std::uint32_t(right);
}

}  // namespace

std::size_t Merges::slot_of(std::uint64_t key) const {
  std::uint64_t h = key * 0x9E3779B97F4A7C15ull;
  h ^= h >> 29;
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = h & mask;
  while (slots_[at].merge.turn.comes() && slots_[at].key != key) at = (at + 1) & mask;
  return at;
}

void Merges::grow(std::size_t slots) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots));
  for (const Slot& s : old)
    if (s.merge.turn.comes()) slots_[slot_of(s.key)] = s;
}

void Merges::reserve(std::size_t merges) { grow(std::bit_ceil(std::max<std::size_t>(16, 2 * merges + 2))); }

void Merges::add(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t id) {
  if (2 * (count_ + 1) > slots_.size()) grow(std::max<std::size_t>(16, 2 * slots_.size()));
  Slot& slot = slots_[slot_of(key_of(left, right))];
  count_ += !slot.merge.turn.comes();
  slot = {key_of(left, right), {Turn(rank), id}};
}

Merges::Merge Merges::find(std::int32_t left, std::int32_t right) const {
  return slots_.empty() ? Merge{} : slots_[slot_of(key_of(left, right))].merge;
}

void Merges::apply(std::vector<std::int32_t>& ids, std::size_t first) const {
  const std::size_t n = ids.size() - first;
  if (n < 2 || count_ == 0) return;
  n <= short_word ? apply_short(ids, first) : apply_long(ids, first);
}

void Merges::apply_short(std::vector<std::int32_t>& ids, std::size_t first) const {
  std::array<Merge, short_word> merges;  // of each token with the one after it
  std::int32_t* const word = ids.data() + first;
  std::size_t n = ids.size() - first;
  for (std::size_t i = 0; i + 1 < n; ++i) merges[i] = find(word[i], word[i + 1]);
  while (n > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < n; ++i)
      if (merges[i].turn < merges[best].turn) best = i;
    if (!merges[best].turn.comes()) break;
    word[best] = merges[best].id;
    std::copy(word + best + 2, word + n, word + best + 1);
    std::copy(merges.begin() + best + 1, merges.begin() + n - 1, merges.begin() + best);
    --n;
    if (best + 1 < n) merges[best] = find(word[best], word[best + 1]);
    if (best > 0) merges[best - 1] = find(word[best - 1], word[best]);
  }
  ids.resize(first + n);
}

// A list of the tokens that are left and a queue of the pairs that can be merged; a pair whose tokens have changed
// since it was queued is passed over.
void Merges::apply_long(std::vector<std::int32_t>& ids, std::size_t first) const {
  struct Pair {
    Turn turn;
    std::size_t at;
    std::int32_t left, right, id;
    bool operator<(const Pair& o) const { return turn != o.turn ? turn > o.turn : at > o.at; }  // the top is the least
  };
  const std::size_t n = ids.size() - first;
  std::int32_t* const word = ids.data() + first;
  std::vector<std::size_t> next(n), previous(n);  // next is n after the last one; nothing is before the first, 0
  for (std::size_t i = 0; i < n; ++i) next[i] = i + 1, previous[i] = std::max<std::size_t>(i, 1) - 1;
  std::priority_queue<Pair> queue;
  const auto push = [&](std::size_t at) {
    if (next[at] == n) return;
    const Merge m = find(word[at], word[next[at]]);
    if (m.turn.comes()) queue.push({m.turn, at, word[at], word[next[at]], m.id});
  };
  for (std::size_t i = 0; i + 1 < n; ++i) push(i);
  while (!queue.empty()) {
    const Pair p = queue.top();
    queue.pop();
    const std::size_t right = next[p.at];
    if (word[p.at] != p.left || right == n || word[right] != p.right) continue;
    word[p.at] = p.id;
    next[p.at] = std::exchange(next[right], n);  // pairs that it began are passed over
    if (next[p.at] != n) previous[next[p.at]] = p.at;
    if (p.at > 0) push(previous[p.at]);
    push(p.at);
  }
  std::size_t left = 0;
  for (std::size_t at = 0; at != n; at = next[at]) word[left++] = word[at];
  ids.resize(first + left);
}

}  // namespace stretto
