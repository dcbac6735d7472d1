// What goes through buffers in the order of time.
#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "stretto/base/id.h"
#include "stretto/base/pack.h"

namespace stretto {
namespace {

std::size_t up_to(std::size_t bytes, std::size_t align) {
  const std::size_t most = bytes + align - 1;
  const bool power = (align & (align - 1)) == 0;  // of two; divisions are slow
  return power ? most & ~(align - 1) : most / align * align;
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
// last block is a taken one. Few different sizes are ever asked for, `sizes` in ascending order: free blocks stand in
// rows, one for each of these, with those that are large enough for it and for no larger one. Rows are short, and very
// much is taken and released.
class Blocks {
 public:
  explicit Blocks(std::vector<std::size_t> sizes) : sizes_(std::move(sizes)), rows_(sizes_.size()) {}
  std::size_t start(BlockId b) const { return all_[b].at; }
  // In the smallest free block that is large enough, the lowest of them.
  BlockId take(std::size_t bytes) {
    auto row = rows_.begin() + (std::lower_bound(sizes_.begin(), sizes_.end(), bytes) - sizes_.begin());
    while (row != rows_.end() && row->empty()) ++row;
    if (row == rows_.end()) {
      const std::size_t at = std::exchange(all_[behind].at, all_[behind].at + bytes);
      return link(at, behind);
    }
    const BlockId b = row->back();
    row->pop_back();
    all_[b].free = false;
    if (bytes_of(b) > bytes) put(link(all_[b].at + bytes, all_[b].next));
    return b;
  }
  void release(BlockId b) {
    if (const BlockId next = all_[b].next; all_[next].free) {
      remove(next);
      unlink(next);
    }
    if (const BlockId before = all_[b].before; all_[before].free) {
      remove(before);
      unlink(b);
      b = before;
    }
    if (all_[b].next == behind) {
      all_[behind].at = all_[b].at;
      return unlink(b);
    }
    put(b);
  }

 private:
  using Row = std::vector<BlockId>;  // from the largest to the smallest, of equal ones the lowest last
  struct Block {
    std::size_t at = 0;
    BlockId before, next;
    bool free = false;
    Row* row = nullptr;  // of a free one: where it stands; none: it is too small for anything
  };
  static constexpr BlockId behind{0};  // the end of the ring of blocks: what lies behind all others

  std::size_t bytes_of(BlockId b) const { return all_[all_[b].next].at - all_[b].at; }
  void put(BlockId b) {
    const std::size_t bytes = bytes_of(b), at = all_[b].at;
    all_[b].free = true;
    const auto larger = std::upper_bound(sizes_.begin(), sizes_.end(), bytes);
    all_[b].row = nullptr;
    if (larger == sizes_.begin()) return;
    Row& row = rows_[larger - sizes_.begin() - 1];
    const auto before = [&](BlockId x) { return std::pair(bytes, at) < std::pair(bytes_of(x), all_[x].at); };
    row.insert(std::find_if_not(row.begin(), row.end(), before), b);
    all_[b].row = &row;
  }
  void remove(BlockId b) {
    all_[b].free = false;
    if (Row* row = all_[b].row) row->erase(std::find(row->begin(), row->end(), b));
  }
  BlockId link(std::size_t at, BlockId next) {
    BlockId b = all_.next_id();
    if (spare_.empty())
      all_.push_back({});
    else
      b = spare_.back(), spare_.pop_back();
    const BlockId before = all_[next].before;
    all_[b] = {at, before, next};
    all_[before].next = all_[next].before = b;
    return b;
  }
  void unlink(BlockId b) {
    const Block& x = all_[b];
    all_[x.before].next = x.next;
    all_[x.next].before = x.before;
    spare_.push_back(b);
  }

  const std::vector<std::size_t> sizes_;
  std::vector<Row> rows_;
  IdVector<BlockId, Block> all_{{}};
  std::vector<BlockId> spare_;  // of blocks that are gone
};

// That are asked for, ascending.
std::vector<std::size_t> sizes_of(std::span<const Lifetime> all, std::size_t align) {
  std::vector<std::size_t> sizes;
  for (const Lifetime& b : all) {
    const std::size_t bytes = up_to(b.bytes, align);
    const auto at = std::lower_bound(sizes.begin(), sizes.end(), bytes);
    if (at == sizes.end() || *at != bytes) sizes.insert(at, bytes);
  }
  return sizes;
}

// A set of numbers below `size`, in which the next one is soon found.
class Taken {
 public:
  explicit Taken(std::size_t size) : words_(size / 64 + 1, 0) {}
  void set(std::size_t i) { words_[i / 64] |= bit(i); }
  void clear(std::size_t i) { words_[i / 64] &= ~bit(i); }
  std::optional<std::size_t> first_from(std::size_t i) const {
    std::size_t w = i / 64;
    std::uint64_t word = words_[w] & ~(bit(i) - 1);
    while (word == 0 && ++w < words_.size()) word = words_[w];
    return word == 0 ? std::nullopt : std::optional(64 * w + std::countr_zero(word));
  }
  std::optional<std::size_t> last_before(std::size_t i) const {
    std::size_t w = i / 64;
    std::uint64_t word = words_[w] & (bit(i) - 1);
    while (word == 0 && w > 0) word = words_[--w];
    return word == 0 ? std::nullopt : std::optional(64 * w + 63 - std::countl_zero(word));
  }

 private:
  static std::uint64_t bit(std::size_t i) { return std::uint64_t{1} << (i % 64); }
  std::vector<std::uint64_t> words_;
};

// Where buffers lie, ascending, and which of these places each has. There are far fewer places than buffers.
struct Places {
  std::vector<std::size_t> all;
  std::vector<std::uint32_t> of;  // by buffer
};
Places places_of(const Packing& p) {
  Places places;
  std::unordered_map<std::size_t, std::uint32_t> known;
  for (const std::size_t offset : p.offsets) {
    const auto [it, fresh] = known.try_emplace(offset, std::uint32_t(places.all.size()));
    if (fresh) places.all.push_back(offset);
    places.of.push_back(it->second);
  }
  std::sort(places.all.begin(), places.all.end());
  std::vector<std::uint32_t> place(places.all.size());
  for (std::uint32_t k = 0; k < places.all.size(); ++k) place[known[places.all[k]]] = k;
  for (std::uint32_t& x : places.of) x = place[x];
  return places;
}

}  // namespace

std::size_t live_bound(std::span<const Lifetime> all, std::size_t align) {
  if (all.empty()) return 0;
  std::int64_t from = all[0].first, to = all[0].last;
  for (const Lifetime& b : all) from = std::min(from, b.first), to = std::max(to, b.last);
  std::vector<std::size_t> change(to - from + 2, 0);  // at every moment, modulo 2^64
  for (const Lifetime& b : all) {
    const std::size_t bytes = up_to(b.bytes, align);
    change[b.first - from] += bytes, change[b.last - from + 1] -= bytes;
  }
  std::size_t live = 0, most = 0;
  for (std::size_t by : change) most = std::max(most, live += by);
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
  Blocks blocks(sizes_of(all, align));
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
  const std::vector<std::uint32_t> starts = in_time(all, &Lifetime::first), ends = in_time(all, &Lifetime::last);
  const Places places = places_of(p);
  std::vector<std::size_t> end(places.all.size(), 0);  // of what is alive there
  Taken alive(places.all.size());
  auto ended = ends.begin();
  for (const std::uint32_t i : starts) {
    for (; ended != ends.end() && all[*ended].last < all[i].first; ++ended)
      if (all[*ended].bytes > 0) alive.clear(places.of[*ended]);
    if (all[i].bytes == 0) continue;
    const std::uint32_t at = places.of[i];
    end[at] = p.offsets[i] + all[i].bytes;
    if (const auto next = alive.first_from(at); next && places.all[*next] < end[at]) return false;
    if (const auto before = alive.last_before(at); before && end[*before] > p.offsets[i]) return false;
    alive.set(at);
  }
  return true;
}

}  // namespace stretto
