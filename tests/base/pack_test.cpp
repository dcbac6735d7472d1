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

TEST(Pack, BoundIsTheMostAliveAtOnce) {
  EXPECT_EQ(live_bound(std::vector<Lifetime>{{10, 0, 2}, {20, 2, 4}, {5, 3, 3}}, 1), 30u);
  EXPECT_EQ(live_bound(std::vector<Lifetime>{{10, 0, 1}, {20, 2, 4}}, 1), 20u);
  EXPECT_EQ(live_bound({}, 64), 0u);
  EXPECT_EQ(pack({}, 64).bytes, 0u);
}

}  // namespace
}  // namespace stretto
