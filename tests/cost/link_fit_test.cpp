#include "stretto/cost/link_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stretto {
namespace {

CollectiveShape sum_of(int members, i64 elements) {
  CollectiveShape s{.members = members, .axes = {"data"}};
  add_box_dim(s, elements, 1, 1);
  return s;
}

// What eight ranks on two nodes would measure.
std::vector<LinkUse> uses() {
  std::vector<LinkUse> all;
  const std::vector<int> eight{0, 1, 2, 3, 4, 5, 6, 7}, pair{0, 4}, node{0, 1, 2, 3};
  for (const i64 elements : {256, 8192, 262144, 4194304}) {
    all.push_back(message_use(false, double(4 * elements)));
    all.push_back(message_use(true, double(4 * elements)));
    all.push_back(collective_use(sum_of(8, elements), 4, eight));
    all.push_back(collective_use(sum_of(4, elements), 4, node));
    all.push_back(collective_use(sum_of(2, elements), 4, pair));
  }
  return all;
}

TEST(LinkFit, AUseIsWhatTheCostModelTakes) {
  const LinkFit f{.inside = {2e-6, 5e10}, .between = {8e-6, 1.2e10}};
  const Cluster c{.inside = f.inside, .between = f.between, .ranks_per_node = 4};
  const std::vector<int> ranks{0, 1, 2, 3, 4, 5, 6, 7};
  const CollectiveShape s = sum_of(8, 100000);
  EXPECT_DOUBLE_EQ(seconds(f, collective_use(s, 4, ranks)), collective_seconds(s, c, ranks));
  EXPECT_DOUBLE_EQ(seconds(f, message_use(true, 4096)), link(c, 3, 4).seconds(4096));
  EXPECT_DOUBLE_EQ(seconds(f, message_use(false, 4096)), link(c, 0, 1).seconds(4096));
}

TEST(LinkFit, FindsTheLinksOfExactSamples) {
  const LinkFit truth{.inside = {2e-6, 5e10}, .between = {8e-6, 1.2e10}};
  std::vector<LinkSample> samples;
  for (const LinkUse& u : uses()) samples.push_back({u, seconds(truth, u)});
  const LinkFit f = fit_links(samples);
  EXPECT_TRUE(f.has_inside && f.has_between);
  EXPECT_NEAR(f.inside.latency, 2e-6, 1e-9);
  EXPECT_NEAR(f.between.latency, 8e-6, 1e-9);
  EXPECT_NEAR(f.inside.bandwidth, 5e10, 1e7);
  EXPECT_NEAR(f.between.bandwidth, 1.2e10, 1e7);
}

TEST(LinkFit, NoiseMovesItLittle) {
  const LinkFit truth{.inside = {2e-6, 5e10}, .between = {8e-6, 1.2e10}};
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  std::vector<LinkSample> samples;
  for (int i = 0; i < 5; ++i)
    for (const LinkUse& u : uses()) samples.push_back({u, seconds(truth, u) * noise(random)});
  const LinkFit f = fit_links(samples);
  EXPECT_NEAR(f.inside.latency / 2e-6, 1, 0.15);
  EXPECT_NEAR(f.between.latency / 8e-6, 1, 0.15);
  EXPECT_NEAR(f.inside.bandwidth / 5e10, 1, 0.15);
  EXPECT_NEAR(f.between.bandwidth / 1.2e10, 1, 0.15);
}

TEST(LinkFit, NothingIsNegativeAndWhatIsNotUsedIsNotThere) {
  // Faster the larger it is: no link does that.
  const std::vector<LinkSample> odd{{message_use(false, 1e3), 1e-3}, {message_use(false, 1e6), 1e-4}};
  const LinkFit f = fit_links(odd);
  EXPECT_TRUE(f.has_inside);
  EXPECT_FALSE(f.has_between);
  EXPECT_GE(f.inside.latency, 0);
  EXPECT_GT(f.inside.bandwidth, 0);
  EXPECT_EQ(f.between, Link{});
  EXPECT_FALSE(fit_links({}).has_inside);
}

}  // namespace
}  // namespace stretto
