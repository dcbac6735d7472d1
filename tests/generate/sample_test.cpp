#include "stretto/generate/sample.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include "support/message.h"

namespace stretto {
namespace {

const std::vector<double> some_logits{1, 3, 2, 3, -1};

// How often each id comes, with u going evenly through [0, 1).
std::map<std::int32_t, double> shares(const SampleOptions& o, const std::vector<double>& logits = some_logits) {
  std::map<std::int32_t, double> count;
  constexpr int n = 20000;
  for (int i = 0; i < n; ++i) count[sample(logits, o, (i + 0.5) / n)] += 1.0 / n;
  return count;
}

TEST(Sample, WithoutTemperatureItIsTheMostLikely) {
  for (const double u : {0.0, 0.5, 0.999999}) EXPECT_EQ(sample(some_logits, {.temperature = 0}, u), 1);
}

TEST(Sample, FollowsTheSoftmax) {
  for (const double t : {0.5, 1.0, 2.0}) {
    double total = 0;
    for (const double l : some_logits) total += std::exp(l / t);
    const auto s = shares({.temperature = t});
    for (std::size_t i = 0; i < some_logits.size(); ++i)
      EXPECT_NEAR(s.at(std::int32_t(i)), std::exp(some_logits[i] / t) / total, 2e-4) << t << " " << i;
  }
}

TEST(Sample, TopKAndTopPCutTheTail) {
  EXPECT_THAT(shares({.top_k = 1}), testing::ElementsAre(testing::Pair(1, testing::DoubleNear(1, 1e-9))));
  const auto two = shares({.top_k = 2});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_NEAR(two.at(1), 0.5, 1e-3);
  EXPECT_NEAR(two.at(3), 0.5, 1e-3);
  EXPECT_EQ(shares({.top_k = 100}).size(), 5u);
  // exp: 2.7 20.1 7.4 20.1 0.4 of 50.7: the first two have 0.79, three 0.94.
  EXPECT_EQ(shares({.top_p = 0.3}).size(), 1u);
  EXPECT_EQ(shares({.top_p = 0.5}).size(), 2u);
  EXPECT_EQ(shares({.top_p = 0.9}).size(), 3u);
  EXPECT_EQ(shares({.top_p = 1}).size(), 5u);
  EXPECT_EQ(shares({.top_p = 1e-9}).size(), 1u);
}

TEST(Sample, ExtremesStayInRange) {
  for (const double u : {0.0, std::nextafter(1.0, 0.0)}) {
    const std::int32_t id = sample({{-1e300, 1e300, 0}}, {.temperature = 1e-3}, u);
    EXPECT_EQ(id, 1);
    EXPECT_EQ(sample({{-INFINITY, 0.0}}, {}, u), 1);
    EXPECT_LT(sample(std::vector<double>(7, 0.0), {}, u), 7);
  }
  EXPECT_THROW(sample({{0, NAN}}, {}, 0.5), Error);
}

TEST(Sample, MistakesAreNamed) {
  const std::string said = refusal_of([] { check({.temperature = -1, .top_k = -2, .top_p = 0}); });
  for (const char* part : {"[temperature] is -1", "[top-k] is -2", "[top-p] is 0"})
    EXPECT_THAT(said, testing::HasSubstr(part));
}

}  // namespace
}  // namespace stretto
