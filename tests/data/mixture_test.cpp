#include "stretto/data/mixture.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cmath>
#include <map>
#include <numeric>

namespace stretto {
namespace {

using testing::ElementsAre;

TEST(BlockShares, AreTheSmallestBlockThatFits) {
  EXPECT_THAT(block_shares({1}), ElementsAre(1));
  EXPECT_THAT(block_shares({0.7, 0.3}), ElementsAre(7, 3));
  EXPECT_THAT(block_shares({2, 2, 4}), ElementsAre(1, 1, 2));
  EXPECT_THAT(block_shares({1, 999}), ElementsAre(1, 999));
}

TEST(BlockShares, EveryoneGetsSomethingHoweverSmall) {
  EXPECT_THAT(block_shares({1e-12, 1, 1e-12, 1e-12}), ElementsAre(1, 65533, 1, 1));
  EXPECT_TRUE(rc::check([] {
    std::vector<double> weights;
    for (int n = *rc::gen::inRange(1, 12); n > 0; --n) weights.push_back(std::pow(10.0, *rc::gen::inRange(-9, 9)));
    const auto shares = block_shares(weights);
    RC_ASSERT(std::accumulate(shares.begin(), shares.end(), i64(0)) <= 65536);
    for (const i64 s : shares) RC_ASSERT(s >= 1);
  }));
}

TEST(BlockShares, AreCloseToTheWeights) {
  EXPECT_TRUE(rc::check([] {
    std::vector<double> weights;
    for (int n = *rc::gen::inRange(1, 8); n > 0; --n) weights.push_back(*rc::gen::inRange(1, 1000));
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    const auto shares = block_shares(weights);
    const double block = double(std::accumulate(shares.begin(), shares.end(), i64(0)));
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const double wanted = weights[k] / total * block;
      RC_ASSERT(std::abs(double(shares[k]) - wanted) <= std::max(1e-3 * wanted, 1.0));
    }
  }));
}

TEST(Mixture, EveryBlockHasItsShares) {
  EXPECT_TRUE(rc::check([] {
    std::vector<MixtureOrder::Source> parts;
    for (int n = *rc::gen::inRange(1, 5); n > 0; --n)
      parts.push_back({.tokens = *rc::gen::inRange<i64>(9, 4000), .weight = double(*rc::gen::inRange(1, 9))});
    const MixtureOrder order(parts, 8, *rc::gen::arbitrary<u64>());
    const i64 block = *rc::gen::inRange<i64>(0, 1000) * order.block();
    std::vector<i64> counts(parts.size(), 0);
    for (i64 i = 0; i < order.block(); ++i) {
      const auto place = order.start_of(block + i);
      RC_ASSERT(place.first >= 0 && place.first + 9 <= parts[place.source].tokens);
      ++counts[place.source];
    }
    RC_ASSERT(counts == order.shares());
  }));
}

TEST(Mixture, EverySourceGoesThroughItsWindowsBeforeItBeginsAgain) {
  const std::vector<MixtureOrder::Source> parts{{.tokens = 801, .weight = 2}, {.tokens = 4001, .weight = 3}};
  const MixtureOrder order(parts, 8, 5);
  std::vector<std::map<i64, int>> seen(2);
  const Order small(801, 8, 0);
  for (i64 i = 0; seen[0].size() < std::size_t(small.windows()); ++i) {
    const auto place = order.start_of(i);
    EXPECT_EQ(++seen[place.source][place.first], 1) << "sequence " << i;
    ASSERT_LT(i, 10000);
  }
}

TEST(Mixture, AloneASourceIsReadInItsOwnOrder) {
  const MixtureOrder mixture({{.tokens = 5000, .weight = 0.3}}, 16, 9);
  const Order order(5000, 16, 9);
  for (i64 i = 0; i < 1000; ++i) EXPECT_EQ(mixture.start_of(i).first, order.first_token(i));
}

TEST(Mixture, ValuesStayAsTheyAre) {  // a run resumed years later must see the same data
  const MixtureOrder order({{.tokens = 100000, .weight = 0.7}, {.tokens = 5000, .weight = 0.3}}, 64, 7);
  std::vector<std::pair<std::size_t, i64>> places;
  for (i64 i = 0; i < 4; ++i) places.emplace_back(order.start_of(i).source, order.start_of(i).first);
  using P = std::pair<std::size_t, i64>;
  EXPECT_THAT(places, ElementsAre(P{0, 27785}, P{1, 490}, P{0, 88777}, P{0, 44553}));
}

}  // namespace
}  // namespace stretto
