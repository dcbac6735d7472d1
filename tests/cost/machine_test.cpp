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

}  // namespace
}  // namespace stretto
