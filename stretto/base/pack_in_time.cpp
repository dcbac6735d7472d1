// What goes through buffers in the order of time.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

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

// Free memory: gaps between what is placed, and everything from `open_` on. No two gaps touch, and none touches
// `open_`.
// There are few of them at any one time, and very many changes: rows in order are faster than trees.
class Gaps {
 public:
  // From the smallest gap that is large enough, the lowest of them.
  std::size_t take(std::size_t bytes) {
    const auto fit = std::lower_bound(by_size_.begin(), by_size_.end(), Gap{bytes, 0});
    if (fit == by_size_.end()) return std::exchange(open_, open_ + bytes);
    const auto [size, at] = *fit;
    const auto gap = place_of(at);
    if (size > bytes)
      change(gap, {size - bytes, at + bytes});
    else
      remove(gap);
    return at;
  }
  void release(std::size_t at, std::size_t bytes) {
    const auto next = place_of(at);
    const auto before = next == by_place_.begin() ? by_place_.end() : std::prev(next);
    const bool joins_next = next != by_place_.end() && next->at == at + bytes;
    if (before != by_place_.end() && before->at + before->bytes == at) {
      Gap joined{bytes + before->bytes, before->at};
      if (joins_next) joined.bytes += next->bytes, remove(next);
      if (joined.at + joined.bytes == open_)
        open_ = joined.at, remove(before);
      else
        change(before, joined);
    } else if (joins_next) {
      change(next, {bytes + next->bytes, at});
    } else if (at + bytes == open_) {
      open_ = at;
    } else {
      by_place_.insert(next, {bytes, at});
      by_size_.insert(size_of({bytes, at}), {bytes, at});
    }
  }

 private:
  struct Gap {
    std::size_t bytes = 0, at = 0;
    auto operator<=>(const Gap&) const = default;
  };
  using Place = std::vector<Gap>::iterator;
  Place place_of(std::size_t at) {
    return std::lower_bound(by_place_.begin(), by_place_.end(), at,
                            [](const Gap& g, std::size_t x) { return g.at < x; });
  }
  Place size_of(const Gap& g) { return std::lower_bound(by_size_.begin(), by_size_.end(), g); }
  void remove(Place gap) {
    by_size_.erase(size_of(*gap));
    by_place_.erase(gap);
  }
  // Its neighbours in place stay; in size it moves past those between.
  void change(Place gap, Gap to) {
    const Place was = size_of(*gap), will = size_of(to);
    if (was < will)
      *std::move(was + 1, will, was) = to;
    else
      *std::prev(std::move_backward(will, was, was + 1)) = to;
    *gap = to;
  }

  std::vector<Gap> by_place_, by_size_;
  std::size_t open_ = 0;
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
  Gaps gaps;
  Packing p;
  p.offsets.assign(all.size(), 0);
  auto ended = ends.begin();
  for (const std::uint32_t i : starts) {
    for (; ended != ends.end() && all[*ended].last < all[i].first; ++ended)
      if (const Lifetime& gone = all[*ended]; gone.bytes > 0) gaps.release(p.offsets[*ended], up_to(gone.bytes, align));
    const std::size_t bytes = up_to(all[i].bytes, align);
    if (bytes == 0) continue;
    p.offsets[i] = gaps.take(bytes);
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
