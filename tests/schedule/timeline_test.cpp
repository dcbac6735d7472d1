#include "stretto/schedule/timeline.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

Timeline example() {
  Timeline t;
  t.actors = 2;
  t.spans = {{.actor = 0, .start = 1, .end = 3},
             {.actor = 0, .start = 5, .end = 7},
             {.actor = 1, .start = 3, .end = 6},
             {.actor = 1, .start = 3, .end = 6, .label = "the other member of an overlap group"},
             {.actor = 1, .lane = Lane::collective, .start = 6, .end = 9}};
  t.memory = {{{0, 0}, {1, 2}, {3, 1}, {5, 3}, {7, 0}}};
  return t;
}

TEST(Timeline, MeasuresFromFirstStartToLastEnd) {
  EXPECT_EQ(example().makespan(), 8);
  EXPECT_EQ(example().span(), 6);
}

TEST(Timeline, CountsOverlappedTimeOnceAndOnlyCompute) {
  EXPECT_EQ(example().busy(0), 4);
  EXPECT_EQ(example().busy(1), 3);
  EXPECT_EQ(example().bubble(0), 0.5);
  EXPECT_EQ(example().bubble(1), 1 - 3.0 / 8);
  EXPECT_EQ(example().bubble(), 1 - 7.0 / 16);
}

TEST(Timeline, PeakIsTheHighestStep) {
  EXPECT_EQ(example().peak(0), 3);
  EXPECT_EQ(example().peak(1), 0) << "no curve was recorded";
}

TEST(Timeline, IsOfAllRanksOfAnActor) {
  const Timeline t{.actors = 2,
                   .ranks = 2,
                   .spans = {{.actor = 0, .coordinate = 0, .start = 0, .end = 8},
                             {.actor = 0, .coordinate = 1, .start = 0, .end = 8, .waiting = 4},
                             {.actor = 1, .coordinate = 0, .start = 4, .end = 8},
                             {.actor = 1, .coordinate = 1, .start = 2, .end = 3},
                             {.actor = 1, .coordinate = 2, .start = 0, .end = 8}}};
  EXPECT_EQ(t.busy_ranks(), (std::vector<double>{8, 4, 4, 1}));
  EXPECT_EQ(t.busy(0), 6);
  EXPECT_EQ(t.bubble(1), 1 - 2.5 / 8);
  EXPECT_EQ(t.bubble(), 1 - 17.0 / 32) << "a rank that is not there does not count";
  EXPECT_EQ(t.span(), 8);
}

TEST(Timeline, EmptyHasNoTime) {
  const Timeline t;
  EXPECT_EQ(t.makespan(), 0);
  EXPECT_EQ(t.span(), 0);
  EXPECT_EQ(t.bubble(), 0);
  EXPECT_EQ(t.busy(0), 0);
}

}  // namespace
}  // namespace stretto
