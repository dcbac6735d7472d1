#include "stretto/base/pack.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace stretto {
namespace {

bool together(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

std::size_t overlaps(const std::vector<Lifetime>& all, const Packing& p) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      n += together(all[i], all[j]) && p.offsets[i] < p.offsets[j] + all[j].bytes &&
           p.offsets[j] < p.offsets[i] + all[i].bytes;
  return n;
}

// Tries every offset for every buffer: shares nothing with the packer.
bool fits(const std::vector<Lifetime>& all, std::vector<std::size_t>& at, std::size_t limit) {
  const std::size_t i = at.size();
  if (i == all.size()) return true;
  for (std::size_t o = 0; o + all[i].bytes <= limit; ++o) {
    bool free = true;
    for (std::size_t j = 0; j < i && free; ++j)
      free = !together(all[i], all[j]) || o >= at[j] + all[j].bytes || at[j] >= o + all[i].bytes;
    if (!free) continue;
    at.push_back(o);
    if (fits(all, at, limit)) return true;
    at.pop_back();
  }
  return false;
}

std::vector<Lifetime> random_lives(int most, int sizes) {
  std::vector<Lifetime> all;
  const int n = *rc::gen::inRange(1, most + 1);
  for (int i = 0; i < n; ++i) {
    const int first = *rc::gen::inRange(0, 8), last = first + *rc::gen::inRange(0, 5);
    all.push_back({std::size_t(*rc::gen::inRange(1, sizes + 1)), first, last});
  }
  return all;
}

TEST(Pack, IsOptimalForUpToEightBuffers) {
  EXPECT_TRUE(rc::check("no smaller packing exists", [] {
    const std::vector<Lifetime> all = random_lives(8, 4);
    const Packing p = pack(all, 1);
    RC_ASSERT(overlaps(all, p) == 0u);
    RC_ASSERT(p.bytes >= live_bound(all, 1));
    std::vector<std::size_t> at;
    RC_ASSERT(p.bytes == 0u || !fits(all, at, p.bytes - 1));
  }));
}

TEST(Pack, NeverOverlapsAndStaysAligned) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<Lifetime> all = random_lives(60, 5000);
    const Packing p = pack(all, 64);
    RC_ASSERT(overlaps(all, p) == 0u);
    for (std::size_t i = 0; i < all.size(); ++i) {
      RC_ASSERT(p.offsets[i] % 64 == 0u);
      RC_ASSERT(p.offsets[i] + all[i].bytes <= p.bytes);
    }
  }));
}

// As pack.h says it, with nothing but a list of what is alive.
Packing quickly_by_hand(const std::vector<Lifetime>& all) {
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return all[a].first != all[b].first ? all[a].first < all[b].first : all[a].bytes > all[b].bytes;
  });
  Packing p{.offsets = std::vector<std::size_t>(all.size(), 0)};
  std::vector<std::size_t> alive;
  for (std::size_t i : order) {
    std::erase_if(alive, [&](std::size_t j) { return all[j].last < all[i].first; });
    std::sort(alive.begin(), alive.end(), [&](std::size_t a, std::size_t b) { return p.offsets[a] < p.offsets[b]; });
    std::size_t end = 0, best = 0, smallest = 0;  // no gap yet
    for (std::size_t j : alive) {
      const std::size_t gap = p.offsets[j] - end;
      if (gap >= all[i].bytes && (smallest == 0 || gap < smallest)) best = end, smallest = gap;
      end = p.offsets[j] + all[j].bytes;
    }
    p.offsets[i] = smallest > 0 ? best : end;
    p.bytes = std::max(p.bytes, p.offsets[i] + all[i].bytes);
    alive.push_back(i);
  }
  return p;
}

TEST(Pack, QuicklyTakesTheSmallestGapThatIsLargeEnough) {
  EXPECT_TRUE(rc::check([] {
    std::vector<Lifetime> all = random_lives(60, *rc::gen::element(4, 30, 1000));
    for (Lifetime& b : all) b.first += *rc::gen::inRange(0, 30), b.last = b.first + *rc::gen::inRange(0, 12);
    const Packing p = pack_quickly(all, 1), expected = quickly_by_hand(all);
    RC_ASSERT(p.offsets == expected.offsets);
    RC_ASSERT(p.bytes == expected.bytes);
  }));
}

// Offsets as they come, often the same ones. Buffers without bytes are nowhere.
TEST(Pack, IsDisjointIfNoPairOverlaps) {
  int disjoint_ones = 0, others = 0;
  EXPECT_TRUE(rc::check([&] {
    std::vector<Lifetime> all = random_lives(12, *rc::gen::element(4, 40));
    const std::size_t places = *rc::gen::element(3, 30, 2000);
    Packing p;
    const auto put = [&] { p.offsets.push_back(*rc::gen::inRange<std::size_t>(0, places)); };
    for (std::size_t i = 0; i < all.size(); ++i) put();
    const bool expected = overlaps(all, p) == 0;
    ++(expected ? disjoint_ones : others);
    for (int empty = 0; empty < 2; ++empty) all.push_back({0, 0, 100}), put();
    RC_ASSERT(disjoint(all, p) == expected);
  }));
  EXPECT_GT(disjoint_ones, 5);
  EXPECT_GT(others, 5);
}

TEST(Pack, BoundIsTheMostAliveAtOnce) {
  EXPECT_EQ(live_bound(std::vector<Lifetime>{{10, 0, 2}, {20, 2, 4}, {5, 3, 3}}, 1), 30u);
  EXPECT_EQ(live_bound(std::vector<Lifetime>{{10, 0, 1}, {20, 2, 4}}, 1), 20u);
  EXPECT_EQ(live_bound({}, 64), 0u);
  EXPECT_EQ(pack({}, 64).bytes, 0u);
}

}  // namespace
}  // namespace stretto
