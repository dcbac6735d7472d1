// What goes through buffers in the order of time.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "stretto/base/id.h"
#include "stretto/base/pack.h"

namespace stretto {
namespace {

std::size_t up_to(std::size_t bytes, std::size_t align) {
  const std::size_t most = bytes + align - 1;
  return std::has_single_bit(align) ? most & ~(align - 1) : most / align * align;  // divisions are slow
}

// The numbers of all buffers in the order of `when`, equal ones in their own order.
std::vector<std::uint32_t> in_time(std::span<const Lifetime> all, std::int64_t Lifetime::*when) {
  std::vector<std::uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0u);
  if (all.empty()) return order;
  const auto [least, most] = std::minmax_element(
      all.begin(), all.end(), [&](const Lifetime& a, const Lifetime& b) { return a.*when < b.*when; });
  const std::int64_t from = (*least).*when;
  const std::size_t moments = (*most).*when - from + 1;
  if (moments > 8 * all.size()) {
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return all[a].*when < all[b].*when; });
    return order;
  }
  std::vector<std::uint32_t> next(moments + 1, 0);  // where the next of each moment goes
  for (const Lifetime& b : all) ++next[b.*when - from + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (std::uint32_t i = 0; i < all.size(); ++i) order[next[all[i].*when - from]++] = i;
  return order;
}

using BlockId = Id<struct BlockTag>;

// Memory as blocks side by side, each taken or free, and all that lies behind them. No two free blocks touch, and the
// last block is a taken one. There are few free ones at any one time, and very many changes: a row in order is faster
// than a tree.
class Blocks {
 public:
  std::size_t start(BlockId b) const { return all_[b].at; }
  // In the smallest free block that is large enough, the lowest of them.
  BlockId take(std::size_t bytes) {
    const auto fit = place_of({bytes, 0});
    if (fit == free_.end()) return append(bytes);
    const Free found = *fit;
    all_[found.block].free = false;
    if (found.bytes == bytes)
      free_.erase(fit);
    else
      shrink(fit, bytes);
    return found.block;
  }
  void release(BlockId b) {
    if (const BlockId next = all_[b].next; all_[next].free) {
      forget(next);
      unlink(next);
    }
    if (const BlockId before = all_[b].before; all_[before].free) {
      forget(before);
      unlink(b);
      b = before;
    }
    if (all_[b].next == behind) {
      all_[behind].at = all_[b].at;
      return unlink(b);
    }
    all_[b].free = true;
    const Free f{bytes_of(b), all_[b].at, b};
    free_.insert(place_of(f), f);
  }

 private:
  struct Block {
    std::size_t at = 0;
    BlockId before, next;
    bool free = false;
  };
  struct Free {
    std::size_t bytes = 0, at = 0;
    BlockId block = {};
    bool operator<(const Free& o) const { return bytes != o.bytes ? bytes < o.bytes : at < o.at; }
  };
  using Place = std::vector<Free>::iterator;
  static constexpr BlockId behind{0};  // the end of the ring of blocks: what lies behind all others

  std::size_t bytes_of(BlockId b) const { return all_[all_[b].next].at - all_[b].at; }
  Place place_of(const Free& f) { return std::lower_bound(free_.begin(), free_.end(), f); }
  void forget(BlockId b) { free_.erase(place_of({bytes_of(b), all_[b].at})); }
  // Its first bytes are taken.
  void shrink(Place was, std::size_t bytes) {
    const std::size_t at = was->at + bytes;
    const Free rest{was->bytes - bytes, at, link(at, all_[was->block].next, true)};
    const Place will = place_of(rest);
    std::move_backward(will, was, was + 1);
    *will = rest;
  }
  BlockId append(std::size_t bytes) {
    const std::size_t at = std::exchange(all_[behind].at, all_[behind].at + bytes);
    return link(at, behind, false);
  }
  BlockId link(std::size_t at, BlockId next, bool free) {
    BlockId b = all_.next_id();
    if (spare_.empty())
      all_.push_back({});
    else
      b = spare_.back(), spare_.pop_back();
    const BlockId before = all_[next].before;
    all_[b] = {at, before, next, free};
    all_[before].next = all_[next].before = b;
    return b;
  }
  void unlink(BlockId b) {
    const auto [at, before, next, free] = all_[b];
    all_[before].next = next;
    all_[next].before = before;
    spare_.push_back(b);
  }

  IdVector<BlockId, Block> all_{{}};
  std::vector<BlockId> spare_;  // of blocks that are gone
  std::vector<Free> free_;
};

}  // namespace

std::size_t live_bound(std::span<const Lifetime> all, std::size_t align) {
  const std::vector<std::uint32_t> starts = in_time(all, &Lifetime::first), ends = in_time(all, &Lifetime::last);
  std::size_t live = 0, most = 0;
  auto ended = ends.begin();
  for (std::uint32_t i : starts) {
    for (; ended != ends.end() && all[*ended].last < all[i].first; ++ended) live -= up_to(all[*ended].bytes, align);
    most = std::max(most, live += up_to(all[i].bytes, align));
  }
  return most;
}

Packing pack_quickly(std::span<const Lifetime> all, std::size_t align) {
  std::vector<std::uint32_t> starts = in_time(all, &Lifetime::first);  // at once: the largest first
  for (auto from = starts.begin(); from != starts.end();) {
    const auto to = std::find_if(from, starts.end(), [&](auto i) { return all[i].first != all[*from].first; });
    if (to - from > 1)
      std::sort(from, to,
                [&](auto a, auto b) { return all[a].bytes != all[b].bytes ? all[a].bytes > all[b].bytes : a < b; });
    from = to;
  }
  const std::vector<std::uint32_t> ends = in_time(all, &Lifetime::last);
  Blocks blocks;
  std::vector<BlockId> block_of(all.size());
  Packing p;
  p.offsets.assign(all.size(), 0);
  auto ended = ends.begin();
  for (const std::uint32_t i : starts) {
    for (; ended != ends.end() && all[*ended].last < all[i].first; ++ended)
      if (all[*ended].bytes > 0) blocks.release(block_of[*ended]);
    const std::size_t bytes = up_to(all[i].bytes, align);
    if (bytes == 0) continue;
    block_of[i] = blocks.take(bytes);
    p.offsets[i] = blocks.start(block_of[i]);
    p.bytes = std::max(p.bytes, p.offsets[i] + bytes);
  }
  return p;
}

bool disjoint(std::span<const Lifetime> all, const Packing& p) {
  std::vector<std::uint32_t> starts, ends;
  for (std::uint32_t i = 0; i < all.size(); ++i)
    if (all[i].bytes > 0) starts.push_back(i), ends.push_back(i);
  std::sort(starts.begin(), starts.end(), [&](auto a, auto b) { return all[a].first < all[b].first; });
  std::sort(ends.begin(), ends.end(), [&](auto a, auto b) { return all[a].last < all[b].last; });
  std::map<std::size_t, std::size_t> alive;  // offset -> end
  std::size_t ended = 0;
  for (std::uint32_t i : starts) {
    for (; ended < ends.size() && all[ends[ended]].last < all[i].first; ++ended) alive.erase(p.offsets[ends[ended]]);
    const std::size_t begin = p.offsets[i], end = begin + all[i].bytes;
    const auto next = alive.lower_bound(begin);
    if (next != alive.end() && next->first < end) return false;
    if (next != alive.begin() && std::prev(next)->second > begin) return false;
    alive[begin] = end;
  }
  return true;
}

}  // namespace stretto
