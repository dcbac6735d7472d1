#include "stretto/data/order.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <numeric>
#include <set>

namespace stretto {
namespace {

TEST(Order, PermutedIsAPermutation) {
  EXPECT_TRUE(rc::check([] {
    const i64 n = *rc::gen::inRange<i64>(1, 3000);
    const u64 stream = *rc::gen::arbitrary<u64>();
    const PhiloxKey key = philox_key(*rc::gen::arbitrary<u64>(), "test");
    std::vector<bool> seen(std::size_t(n), false);
    for (i64 i = 0; i < n; ++i) {
      const i64 p = permuted(i, n, key, stream);
      RC_ASSERT(p >= 0 && p < n && !seen[std::size_t(p)]);
      seen[std::size_t(p)] = true;
    }
  }));
}

TEST(Order, EverySequenceLiesInsideAndAnEpochVisitsEveryWindowOnce) {
  EXPECT_TRUE(rc::check([] {
    const i64 length = *rc::gen::inRange<i64>(1, 64);
    const i64 tokens = length + *rc::gen::inRange<i64>(1, 4000);
    const Order order(tokens, length, *rc::gen::arbitrary<u64>());
    for (i64 epoch = 0; epoch < 3; ++epoch) {
      std::vector<i64> firsts;
      for (i64 i = 0; i < order.windows(); ++i) {
        const i64 first = order.first_token(epoch * order.windows() + i);
        RC_ASSERT(first >= 0 && first + length + 1 <= tokens);
        firsts.push_back(first);
      }
      std::sort(firsts.begin(), firsts.end());
      for (std::size_t i = 1; i < firsts.size(); ++i) RC_ASSERT(firsts[i] - firsts[i - 1] == length);
    }
  }));
}

TEST(Order, AnEpochLeavesOutLessThanTwoWindows) {
  for (i64 tokens : {3, 10, 100, 1001, 4096})
    for (i64 length : {1, 2, 7, 64})
      if (tokens > length) {
        EXPECT_GT((Order(tokens, length, 1).windows() + 2) * length, tokens - 1) << tokens << " " << length;
      }
}

TEST(Order, DependsOnSeedAndEpoch) {
  const Order a(100000, 64, 1), same(100000, 64, 1), b(100000, 64, 2);
  int other_seed = 0, other_epoch = 0;
  for (i64 i = 0; i < 200; ++i) {
    EXPECT_EQ(a.first_token(i), same.first_token(i));
    other_seed += a.first_token(i) != b.first_token(i);
    other_epoch += a.first_token(i) != a.first_token(i + a.windows());
  }
  EXPECT_GT(other_seed, 190);
  EXPECT_GT(other_epoch, 190);
}

TEST(Order, ValuesStayAsTheyAre) {  // a run resumed years later must see the same data
  const Order order(100000, 64, 7);
  std::vector<i64> firsts;
  for (i64 i = 0; i < 4; ++i) firsts.push_back(order.first_token(i));
  EXPECT_THAT(firsts, testing::ElementsAre(14305, 47969, 90081, 82721));
}

}  // namespace
}  // namespace stretto
