#include "stretto/run/inner/busy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace stretto {
namespace {

TEST(BusyMachine, IsSaidOnce) {
  const CoreTime start = core_time();
  BusyMachine busy(0.1);
  const CoreTime crowded{start.ran + 4, start.waited + 6};
  EXPECT_EQ(busy.after(2, 10, crowded), std::nullopt);  // too few steps to tell
  EXPECT_EQ(busy.after(10, 1, crowded), std::nullopt);  // it is over soon
  const auto line = busy.after(10, 10, crowded);
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, testing::MatchesRegex("busy     other programs use the cores: this run's threads have waited for "
                                           "one (59|60)% of the time, and a step takes 1.0 s instead of 100.0 ms"));
  EXPECT_EQ(busy.after(20, 20, crowded), std::nullopt);
}

TEST(BusyMachine, IsNotBlamedForAWrongPrediction) {
  const CoreTime start = core_time();
  BusyMachine busy(0.1);
  EXPECT_EQ(busy.after(10, 10, {start.ran + 9.9, start.waited + 0.1}), std::nullopt);
  EXPECT_EQ(busy.after(100, 10, {start.ran + 4, start.waited + 6}), std::nullopt);  // as fast as predicted
}

TEST(CoreTime, Grows) {
  const CoreTime before = core_time();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  while (std::chrono::steady_clock::now() < end) {
  }
  const CoreTime after = core_time();
  EXPECT_GT(after.ran + after.waited, before.ran + before.waited);
}

}  // namespace
}  // namespace stretto
