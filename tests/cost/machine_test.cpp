#include "stretto/cost/machine.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(Cluster, LinksDependOnTheNode) {
  const Cluster c{.inside = {1, 10}, .between = {2, 5}, .ranks_per_node = 4};
  EXPECT_EQ(link(c, 0, 3), c.inside);
  EXPECT_EQ(link(c, 3, 4), c.between);
  EXPECT_EQ(link(c, 5, 5).seconds(1e9), 0);
  EXPECT_EQ(link(c, 3, 4).seconds(10), 4);
  EXPECT_EQ(seconds({.flops = 10, .memory_bandwidth = 2}, 100, 4), 10);
  EXPECT_EQ(seconds({.flops = 10, .memory_bandwidth = 2}, 100, 40), 20);
}

TEST(Cluster, RunsThatNodesDoNotDivideTakeAsManyOfEach) {
  const Cluster rack{.ranks_per_node = 72, .one_ring = true};
  EXPECT_EQ(placed(rack, 256).ranks_per_node, 64);
  EXPECT_EQ(placed(rack, 64).ranks_per_node, 72) << "fits into one";
  EXPECT_EQ(placed(rack, 144).ranks_per_node, 72);
  EXPECT_EQ(placed(rack, 74).ranks_per_node, 37);
  EXPECT_EQ(placed(rack, 73).ranks_per_node, 72) << "a prime";
  EXPECT_EQ(placed(Cluster{.ranks_per_node = 8}, 12).ranks_per_node, 8) << "a file of measured links is as it is";
}

}  // namespace
}  // namespace stretto
