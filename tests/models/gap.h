// How far lists of numbers are apart: max|a-b| / max|b|. What is not a number is infinitely far away.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace stretto::test {

inline double gap(const std::vector<double>& a, const std::vector<double>& b, double least_size = 0) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = least_size;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference = std::max(difference, std::isnan(a[i]) ? INFINITY : std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return difference / size;
}

}  // namespace stretto::test
