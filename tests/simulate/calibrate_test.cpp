#include "stretto/simulate/calibrate.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

std::vector<MeasuredRun> runs(double factor, double attention, double elements) {
  std::vector<MeasuredRun> all;
  for (int i = 1; i <= 8; ++i) {
    const Spent s{.products = 10, .attention = 1.0 * i, .elements = i % 3 + 0.5, .update = 0.5, .bubble = 2};
    all.push_back({s, CalibrationFit{factor, attention, elements}.seconds(s)});
  }
  return all;
}

TEST(Calibrate, OneRunGivesTheFactor) {
  const Spent s{.products = 3, .bubble = 1};
  const std::vector<MeasuredRun> one{{s, 6}};
  const Calibration c = calibrate(one);
  EXPECT_DOUBLE_EQ(c.fit.factor, 1.5);
  EXPECT_EQ(c.fit.attention, 1);
  EXPECT_NEAR(c.before[0], 4.0 / 6 - 1, 1e-12);
  EXPECT_NEAR(c.after[0], 0, 1e-12);
  EXPECT_TRUE(c.left_out.empty()) << "nothing is left to predict it from";
}

TEST(Calibrate, RatesAreFoundFromEnoughRuns) {
  const auto measured = runs(1.2, 1.5, 0.8);
  const Calibration c = calibrate(measured);
  EXPECT_NEAR(c.fit.factor, 1.2, 0.05);
  EXPECT_NEAR(c.fit.attention, 1.5, 0.15);
  EXPECT_LT(mean_error(c.after), 0.01);
  EXPECT_LT(mean_error(c.left_out), 0.02);
  EXPECT_GT(mean_error(c.before), 0.1);
}

TEST(Calibrate, RatesStayWhereTheyAreWithFewRuns) {
  auto measured = runs(1, 2, 1);
  measured.resize(runs_for_rates - 1);
  EXPECT_EQ(calibrate(measured).fit.attention, 1);
}

TEST(Calibrate, WithoutRunsIsRefused) { EXPECT_THROW(calibrate({}), Error); }

}  // namespace
}  // namespace stretto
