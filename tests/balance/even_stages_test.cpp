#include "stretto/balance/even_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace stretto {
namespace {

double longest(const std::vector<double>& seconds, const std::vector<int>& stages) {
  double most = 0;
  std::size_t at = 0;
  for (const int n : stages) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += seconds[at++];
    most = std::max(most, sum);
  }
  return most;
}

// By trying every cut.
double best_longest(const std::vector<double>& seconds, std::size_t from, int stages) {
  if (stages == 1) return std::accumulate(seconds.begin() + from, seconds.end(), 0.0);
  double best = 1e30, sum = 0;
  for (std::size_t end = from + 1; end + stages - 1 <= seconds.size(); ++end) {
    sum += seconds[end - 1];
    best = std::min(best, std::max(sum, best_longest(seconds, end, stages - 1)));
  }
  return best;
}

TEST(EvenStages, NoCutHasAShorterLongestStage) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<double> seconds(2 + random() % 9);
    for (double& s : seconds) s = 1 + random() % 20;
    const int stages = 1 + random() % seconds.size();
    const std::vector<int> cut = even_stages(seconds, stages);
    ASSERT_EQ(std::ssize(cut), stages);
    EXPECT_EQ(std::accumulate(cut.begin(), cut.end(), 0), std::ssize(seconds));
    EXPECT_GE(*std::min_element(cut.begin(), cut.end()), 1);
    EXPECT_NEAR(longest(seconds, cut), best_longest(seconds, 0, stages), 1e-4 * longest(seconds, cut));
  }
}

TEST(EvenStages, EqualPiecesAreSharedEqually) {
  EXPECT_EQ(even_stages(std::vector<double>(12, 1.0), 4), (std::vector{3, 3, 3, 3}));
  EXPECT_EQ(even_stages({1, 1, 1, 1, 4}, 2), (std::vector{4, 1}));
}

TEST(EvenStages, SlowerStagesTakeFewerPiecesAndNoneMoreThanItMay) {
  const std::vector<double> fast(12, 1.0), slow(12, 2.0);
  EXPECT_EQ(even_stages({{&slow}, {&fast}, {&fast}}), (std::vector{2, 5, 5}));
  EXPECT_EQ(even_stages({{&fast, 2}, {&fast}, {&fast}}), (std::vector{2, 5, 5}));
  EXPECT_TRUE(even_stages({{&fast, 2}, {&fast, 4}, {&fast, 5}}).empty()) << "11 of 12";
}

}  // namespace
}  // namespace stretto
