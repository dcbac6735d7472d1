#include "stretto/kernels/normal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace stretto {
namespace {

TEST(Normal, HasTheMomentsOfANormal) {
  std::vector<double> x(400000);
  fill_normal(philox_key(1, "w"), 0, 1, std::span<double>(x));
  double m[5] = {};
  for (double v : x) {
    ASSERT_TRUE(std::isfinite(v));
    for (int k = 1; k <= 4; ++k) m[k] += std::pow(v, k) / double(x.size());
  }
  EXPECT_NEAR(m[1], 0, 0.01);
  EXPECT_NEAR(m[2], 1, 0.01);
  EXPECT_NEAR(m[3], 0, 0.03);
  EXPECT_NEAR(m[4], 3, 0.06);
}

// The share of numbers below a few points against the normal distribution, and no correlation between neighbours.
TEST(Normal, HasTheShapeOfANormal) {
  std::vector<float> x(400000);
  fill_normal(philox_key(7, "v"), 0, 1, std::span<float>(x));
  for (double at : {-3.0, -1.5, -0.5, 0.0, 0.7, 2.0}) {
    double below = 0;
    for (float v : x) below += v < at;
    EXPECT_NEAR(below / double(x.size()), 0.5 * std::erfc(-at / std::sqrt(2.0)), 0.003) << at;
  }
  for (std::size_t lag : {1, 2, 3, 4, 32}) {
    double c = 0;
    for (std::size_t i = lag; i < x.size(); ++i) c += double(x[i]) * double(x[i - lag]) / double(x.size());
    EXPECT_NEAR(c, 0, 0.01) << lag;
  }
}

TEST(Normal, IsAFunctionOfKeyAndIndexOnly) {
  const PhiloxKey key = philox_key(3, "w");
  std::vector<float> all(300);
  fill_normal(key, 0, 0.02, std::span<float>(all));
  for (std::size_t first : {1u, 5u, 31u, 32u, 33u, 100u})
    for (std::size_t n : {1u, 7u, 64u, 150u}) {
      std::vector<float> part(n);
      fill_normal(key, first, 0.02, std::span<float>(part));
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(part[i], all[first + i]);
    }
  std::vector<double> wide(300);
  fill_normal(key, 0, 0.02, std::span<double>(wide));
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(float(wide[i]), all[i]);
}

}  // namespace
}  // namespace stretto
