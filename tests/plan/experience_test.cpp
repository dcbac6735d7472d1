#include "stretto/plan/inner/experience.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(Experience, IsOfWhatHasTheSameCollectives) {
  Experience e;
  const RunKeys k{.pipe = 4, .tensor = 2, .schedule = "zb-h1", .microbatches = 8};
  EXPECT_FALSE(e.knows(k));
  EXPECT_EQ(e.longer(k), 1);
  e.add(k, {.longer = 0.95});
  RunKeys more = k;
  more.microbatches = 16, more.recompute = Recompute::full, more.zero = 1;
  EXPECT_TRUE(e.knows(more));
  EXPECT_EQ(e.longer(more), 0.95);
  for (int RunKeys::*axis : {&RunKeys::tensor, &RunKeys::context, &RunKeys::expert, &RunKeys::zero}) {
    RunKeys other = k;
    other.*axis = 3;
    EXPECT_FALSE(e.knows(other)) << other.str();
  }
  more.schedule = "1f1b";
  EXPECT_FALSE(e.knows(more));
}

// A lower bound: nothing is left out because one of its kind was longer.
TEST(Experience, IsTheLeast) {
  Experience e;
  const RunKeys k{.pipe = 4, .microbatches = 8};
  e.add(k, {.longer = 1.02, .larger = 1.2});
  e.add(k, {.longer = 0.98, .larger = 1.1});
  e.add(k, {.longer = 1.01, .larger = 1.3});
  EXPECT_EQ(e.longer(k), 0.98);
  EXPECT_EQ(e.larger(k), 1.1);
}

// Of another schedule that makes weight gradients the same way, if there is no better one.
TEST(Experience, OfMemoryIsOfSchedulesThatKeepTheSame) {
  Experience e;
  e.add({.pipe = 4, .schedule = "zb-h1"}, {.larger = 1.2});
  EXPECT_EQ(e.larger({.pipe = 4, .schedule = "zb-v", .chunks = 2}), 1.2);
  EXPECT_EQ(e.larger({.pipe = 4, .schedule = "1f1b"}), 1);
  EXPECT_EQ(e.larger({.pipe = 4, .schedule = "zb-h1", .recompute = Recompute::full}), 1);
  EXPECT_EQ(e.larger({.pipe = 4, .zero = 2, .schedule = "zb-h1"}), 1);
  e.add({.pipe = 4, .schedule = "zb-v", .chunks = 2}, {.larger = 1.05});
  EXPECT_EQ(e.larger({.pipe = 2, .schedule = "zb-v", .chunks = 2}), 1.05);
  EXPECT_EQ(e.larger({.pipe = 4, .schedule = "zb-h1"}), 1.2);
}

}  // namespace
}  // namespace stretto
