#include "stretto/cost/collective.h"

#include <gtest/gtest.h>

#include <vector>

namespace stretto {
namespace {

CollectiveShape boxes(CollectiveKind kind, int members) {
  return {.kind = kind, .dtype = f32, .members = members, .axes = {"data"}, .sizes = {10, 10}};
}

TEST(CollectiveCost, Rings) {
  const Link link{.latency = 3, .bandwidth = 10};
  // 400 bytes: a box. All members' boxes together: 1600.
  EXPECT_EQ(collective_bytes(boxes(CollectiveKind::reduce, 4)), 600);
  EXPECT_EQ(collective_seconds(boxes(CollectiveKind::reduce, 4), link), 60 + 6 * 3);
  for (CollectiveKind kind : {CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::exchange}) {
    EXPECT_EQ(collective_bytes(boxes(kind, 4)), 1200);
    EXPECT_EQ(collective_seconds(boxes(kind, 4), link), 120 + 3 * 3);
  }
}

TEST(CollectiveCost, AloneNothingIsSent) {
  for (CollectiveKind kind : {CollectiveKind::reduce, CollectiveKind::gather})
    EXPECT_EQ(collective_seconds(boxes(kind, 1), {.latency = 3, .bandwidth = 10}), 0);
}

TEST(CollectiveCost, NodesFirst) {
  const Cluster c{
      .inside = {.latency = 1, .bandwidth = 100}, .between = {.latency = 5, .bandwidth = 10}, .ranks_per_node = 2};
  const std::vector<int> near{4, 5}, far{0, 2, 4, 6}, both{0, 1, 2, 3};
  for (CollectiveKind kind :
       {CollectiveKind::reduce, CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::exchange}) {
    EXPECT_EQ(collective_seconds(boxes(kind, 2), c, near), collective_seconds(boxes(kind, 2), c.inside));
    EXPECT_EQ(collective_seconds(boxes(kind, 4), c, far), collective_seconds(boxes(kind, 4), c.between));
  }
  // 400 bytes: 200 within a node, then half of 200 between the two.
  EXPECT_EQ(collective_seconds(boxes(CollectiveKind::reduce, 4), c, both), 2 * ((1 + 2) + (5 + 10)));
  EXPECT_EQ(collective_seconds(boxes(CollectiveKind::gather, 4), c, both), (1 + 8) + (5 + 40));
  EXPECT_EQ(collective_seconds(boxes(CollectiveKind::exchange, 4), c, both), (1 + 8) + (5 + 80));
}

}  // namespace
}  // namespace stretto
