#include "stretto/base/pack.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace stretto {
namespace {

std::size_t rounded(std::size_t bytes, std::size_t align) { return (bytes + align - 1) / align * align; }

std::vector<std::uint32_t> numbered(std::span<const Lifetime> all) {
  std::vector<std::uint32_t> numbers(all.size());
  std::iota(numbers.begin(), numbers.end(), 0u);
  return numbers;
}

// Places buffers one after the other, each at the lowest offset that is free during its whole life.
class Placer {
 public:
  Placer(std::span<const Lifetime> lifetimes, std::size_t alignment) : all(lifetimes), align(alignment) {
    find_neighbours();
  }
  const std::span<const Lifetime> all;
  const std::size_t align;
  Packing packing;
  std::size_t work = 0;  // of placing all, in comparisons, about

  void reset() {
    placed_.clear();
    is_placed_.assign(all.size(), 0);
    packing.offsets.assign(all.size(), 0);
    packing.bytes = 0;
  }
  void place(std::uint32_t i) {
    const std::size_t bytes = rounded(all[i].bytes, align);
    const std::size_t at = bytes == 0 ? 0 : dense_ ? lowest_among_all(all[i], bytes) : lowest(i, bytes);
    packing.offsets[i] = at;
    packing.bytes = std::max(packing.bytes, at + bytes);
    is_placed_[i] = bytes > 0;
    if (bytes == 0 || !dense_) return;
    const auto where = std::upper_bound(placed_.begin(), placed_.end(), at,
                                        [&](std::size_t v, std::uint32_t p) { return v < packing.offsets[p]; });
    placed_.insert(where, i);
  }

 private:
  // Lists of what is alive together, unless that is nearly everything.
  void find_neighbours() {
    std::vector<std::uint32_t> starts = numbered(all);
    std::stable_sort(starts.begin(), starts.end(), [&](auto a, auto b) { return all[a].first < all[b].first; });
    std::vector<std::vector<std::uint32_t>> lists(all.size());
    std::vector<std::uint32_t> alive;
    const std::size_t limit = all.size() * all.size() / 16;
    for (std::uint32_t i : starts) {
      std::erase_if(alive, [&](std::uint32_t o) { return all[o].last < all[i].first; });
      for (std::uint32_t o : alive) lists[o].push_back(i), lists[i].push_back(o);
      if (all[i].bytes > 0) alive.push_back(i);
      if ((work += alive.size()) > limit) break;
    }
    dense_ = work > limit;
    work = dense_ ? all.size() * all.size() : 24 * work;
    if (!dense_) neighbours_ = std::move(lists);
  }
  std::size_t lowest(std::uint32_t i, std::size_t bytes) {
    busy_.clear();
    for (std::uint32_t o : neighbours_[i])
      if (is_placed_[o]) busy_.push_back({packing.offsets[o], packing.offsets[o] + rounded(all[o].bytes, align)});
    std::sort(busy_.begin(), busy_.end());
    std::size_t at = 0;
    for (const auto& [begin, end] : busy_) {
      if (begin >= at + bytes) break;
      at = std::max(at, end);
    }
    return at;
  }
  std::size_t lowest_among_all(const Lifetime& b, std::size_t bytes) const {
    std::size_t at = 0;
    for (std::uint32_t other : placed_) {
      const Lifetime& o = all[other];
      if (o.last < b.first || o.first > b.last) continue;
      const std::size_t begin = packing.offsets[other], end = begin + rounded(o.bytes, align);
      if (begin >= at + bytes) break;  // the gap before it is large enough; later ones start even higher
      at = std::max(at, end);
    }
    return at;
  }

  bool dense_ = false;
  std::vector<std::vector<std::uint32_t>> neighbours_;
  std::vector<char> is_placed_;
  std::vector<std::uint32_t> placed_;  // sorted by offset
  std::vector<std::pair<std::size_t, std::size_t>> busy_;
};

Packing in_order(Placer& placer, std::span<const std::uint32_t> order) {
  placer.reset();
  for (std::uint32_t i : order) placer.place(i);
  return placer.packing;
}

// Only if it is better than the best so far.
void take_if_better(Placer& placer, std::span<const std::uint32_t> order, std::optional<Packing>& best) {
  placer.reset();
  for (std::uint32_t i : order) {
    placer.place(i);
    if (best && placer.packing.bytes >= best->bytes) return;
  }
  best = placer.packing;
}

// Whoever ends at the top was placed too late: it goes to the front of the order, and all is placed anew, as long as
// that may still help. Equal microbatches have equal ones there: in every other round they move together.
template <class Key>
void improve(Placer& placer, std::vector<std::uint32_t>& order, Packing& best, std::size_t bound, Key key) {
  const std::size_t rounds = std::clamp<std::size_t>(20000000 / (placer.work + 1), 0, 400);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return key(placer.all[a]) > key(placer.all[b]); });
  for (std::size_t round = 0; round < rounds && best.bytes > bound; ++round) {
    const Packing p = in_order(placer, order);
    if (p.bytes < best.bytes) best = p;
    const auto at_top = [&](std::uint32_t i) {
      return p.offsets[i] + rounded(placer.all[i].bytes, placer.align) == p.bytes;
    };
    const auto top = std::find_if(order.begin(), order.end(), at_top);
    if (round % 2 == 0)
      std::rotate(order.begin(), top, top + 1);
    else
      std::stable_partition(order.begin(), order.end(), at_top);
  }
}

Packing pack_together(std::span<const Lifetime> all, std::size_t align) {
  const std::size_t bound = live_bound(all, align);
  std::vector<std::uint32_t> order = numbered(all);
  Placer placer(all, align);
  std::optional<Packing> best;
  const auto attempt = [&](auto key) {
    if (best && best->bytes <= bound) return;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return key(all[a]) > key(all[b]); });
    take_if_better(placer, order, best);
  };
  const auto life = [](const Lifetime& b) { return b.last - b.first + 1; };
  const auto area = [&](const Lifetime& b) { return 1.0 * b.bytes * life(b); };
  attempt([&](const Lifetime& b) { return std::pair(b.bytes, life(b)); });
  attempt([&](const Lifetime& b) { return std::pair(life(b), b.bytes); });
  attempt(area);
  attempt([&](const Lifetime& b) { return std::pair(-b.first, b.bytes); });
  attempt([&](const Lifetime& b) { return std::pair(b.last, b.bytes); });
  if (all.size() > 8) {
    improve(placer, order, *best, bound, [](const Lifetime& b) { return b.bytes; });
    improve(placer, order, *best, bound, area);
    improve(placer, order, *best, bound, life);
  } else if (best->bytes > bound) {
    // Some order of lowest-fit placements gives an optimal packing: the one that ascends by its offsets.
    order = numbered(all);
    do {
      take_if_better(placer, order, best);
    } while (best->bytes > bound && std::next_permutation(order.begin(), order.end()));
  }
  return *best;
}

// A stretch of time that no buffer crosses on either side, its times counted from its own start.
using Segment = std::vector<Lifetime>;
struct SegmentLess {
  bool operator()(const Segment& a, const Segment& b) const {
    const auto key = [](const Lifetime& l) { return std::tuple(l.bytes, l.first, l.last); };
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [&](const Lifetime& x, const Lifetime& y) { return key(x) < key(y); });
  }
};

// Moments at which nothing is alive cut the problem into independent ones; microbatches that run one after the other
// give equal ones, which are solved once.
Packing in_segments(std::span<const Lifetime> all, std::size_t align) {
  std::vector<std::uint32_t> order = numbered(all);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return all[a].first < all[b].first; });
  Packing whole;
  whole.offsets.assign(all.size(), 0);
  std::map<Segment, Packing, SegmentLess> known;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    std::int64_t last = all[order[begin]].last;
    for (end = begin; end < order.size() && (end == begin || all[order[end]].first <= last); ++end)
      last = std::max(last, all[order[end]].last);
    Segment segment;
    for (std::size_t i = begin; i < end; ++i) {
      const Lifetime& l = all[order[i]];
      segment.push_back({l.bytes, l.first - all[order[begin]].first, l.last - all[order[begin]].first});
    }
    auto it = known.find(segment);
    if (it == known.end()) {
      Packing p = pack_together(segment, align);
      it = known.emplace(std::move(segment), std::move(p)).first;
    }
    for (std::size_t i = begin; i < end; ++i) whole.offsets[order[i]] = it->second.offsets[i - begin];
    whole.bytes = std::max(whole.bytes, it->second.bytes);
  }
  return whole;
}

// Moments at which little is alive, each the least of its neighbourhood.
std::vector<std::int64_t> narrow_moments(std::span<const Lifetime> all, std::size_t align, std::int64_t little) {
  std::map<std::int64_t, std::int64_t> change;
  for (const Lifetime& b : all) {
    const std::int64_t bytes = rounded(b.bytes, align);
    change[b.first] += bytes, change[b.last + 1] -= bytes;
  }
  std::vector<std::int64_t> moments;
  std::int64_t live = 0, least = little + 1;
  for (const auto& [time, by] : change) {
    live += by;
    if (live > little) {
      least = little + 1;
    } else if (live < least) {
      if (least <= little) moments.pop_back();
      moments.push_back(time), least = live;
    }
  }
  return moments;
}

// What crosses a moment at which little else is alive gets memory of its own below all the rest, which then falls into
// independent problems: a pipeline's last actor, but for the messages that wait for it. No packing when nothing does.
std::optional<Packing> over_bridges(std::span<const Lifetime> all, std::size_t align, std::size_t bound) {
  const std::vector<std::int64_t> cuts = narrow_moments(all, align, bound / 16);
  std::vector<Lifetime> bridges, rest;
  std::vector<char> is_bridge;
  for (const Lifetime& b : all) {
    const auto cut = std::lower_bound(cuts.begin(), cuts.end(), b.first);
    is_bridge.push_back(cut != cuts.end() && *cut <= b.last);
    (is_bridge.back() ? bridges : rest).push_back(b);
  }
  if (bridges.empty()) return {};
  const Packing below = pack_quickly(bridges, align), above = in_segments(rest, align);
  Packing p{.offsets = {}, .bytes = below.bytes + above.bytes};
  for (std::size_t i = 0, b = 0, r = 0; i < all.size(); ++i)
    p.offsets.push_back(is_bridge[i] ? below.offsets[b++] : below.bytes + above.offsets[r++]);
  return p;
}

}  // namespace

Packing pack(std::span<const Lifetime> all, std::size_t align) {
  if (all.size() <= 8) return in_segments(all, align);
  const std::size_t bound = live_bound(all, align);
  std::optional<Packing> apart = over_bridges(all, align, bound);
  if (apart && apart->bytes <= bound + bound / 100) return *std::move(apart);
  Packing together = in_segments(all, align);
  return apart && apart->bytes < together.bytes ? *std::move(apart) : together;
}

}  // namespace stretto
