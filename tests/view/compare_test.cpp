#include "stretto/view/inner/compare.h"

#include <gtest/gtest.h>

#include "sample.h"

namespace stretto {
namespace {

TEST(Compare, PerKindWithIdleLast) {
  const std::vector<KindDifference> rows = compare(sample::one_f_one_b(4, 8), sample::zb_h1(4, 8));
  ASSERT_EQ(rows.size(), 5u);  // F B I W idle
  EXPECT_EQ(rows[0].kind, "F");
  EXPECT_EQ(rows[0].count, 32);
  EXPECT_EQ(rows[0].percent(), 0);
  EXPECT_EQ(rows[1].kind, "B");
  EXPECT_EQ(rows[1].other_count, 0);
  EXPECT_EQ(rows[1].percent(), 0);
  EXPECT_EQ(rows[4].kind, "idle");
  EXPECT_DOUBLE_EQ(rows[4].total, 4 * 9);        // 33 - 24 each
  EXPECT_DOUBLE_EQ(rows[4].other_total, 4 * 3);  // 27 - 24 each
}

TEST(Compare, MeasuredAgainstPredicted) {
  Timeline predicted = sample::one_f_one_b(2, 4), run = predicted;
  for (Span& s : run.spans)
    if (s.action->phase == Phase::F) s.end = s.start + 1.25;
  run.spans.push_back({.lane = Lane::collective, .start = 20, .end = 22, .label = "reduce"});
  const std::vector<KindDifference> rows = compare(predicted, run);
  ASSERT_EQ(rows.size(), 4u);  // F B collectives idle
  EXPECT_DOUBLE_EQ(rows[0].percent(), 25);
  EXPECT_DOUBLE_EQ(rows[1].percent(), 0);
  EXPECT_LE(rows[0].other_least, rows[0].other_mean());
  EXPECT_GE(rows[0].other_most, rows[0].other_mean());
  EXPECT_EQ(rows[2].kind, "collectives");
  EXPECT_EQ(rows[2].count, 0);
  EXPECT_DOUBLE_EQ(rows[2].other_mean(), 2);
}

TEST(Compare, EmptyTimelines) {
  const std::vector<KindDifference> rows = compare({}, {});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].kind, "idle");
}

}  // namespace
}  // namespace stretto
