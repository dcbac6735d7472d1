#include "stretto/cost/collective.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stretto
