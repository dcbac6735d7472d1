// Products of rows that lie anywhere have the bits of the library's products of gathered rows.
#include "stretto/kernels/cpu/row_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "stretto/kernels/cpu/blas.h"
#include "stretto/ops/choose.h"

namespace stretto {
namespace {

using choosing::RowPanels;

struct Random {
  std::mt19937 engine;
  i64 between(i64 a, i64 b) { return a + i64(engine() % u64(b - a + 1)); }
  std::vector<float> floats(i64 n) {
    std::vector<float> all(n);
    for (float& x : all) x = float(between(-1000, 1000)) * 1e-3f;
    return all;
  }
  std::vector<i64> places(i64 n, i64 step) {  // every other one, in no order
    std::vector<i64> all(2 * n);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), engine);
    all.resize(n);
    for (i64& x : all) x *= step;
    return all;
  }
};

// Lines as one matrix after the other.
std::vector<float> gathered(const float* from, const std::vector<i64>& at, i64 length) {
  std::vector<float> all;
  for (i64 a : at) all.insert(all.end(), from + a, from + a + length);
  return all;
}

struct Case {
  ProductSize size;
  bool summed_left, summed_right, add, in_parts;
};

// Scratch is exactly what was asked for; what lies beside the result stays.
void check(Random& random, const Case& c) {
  const auto [m, n, k] = c.size;
  const i64 left_lines = c.summed_left ? k : m, left_length = c.summed_left ? m : k;
  const i64 right_lines = c.summed_right ? k : n, right_length = c.summed_right ? n : k;
  const std::vector<i64> left = random.places(left_lines, left_length + 3), to = random.places(m, n + 5);
  const std::vector<float> a = random.floats(2 * left_lines * (left_length + 3)),
                           b = random.floats(right_lines * (right_length + 1));
  std::vector<float> out = random.floats(2 * m * (n + 5)), expected = out;
  std::vector<float> scratch(RowPanels::floats(m, n, k) + 16, 77.f);
  multiply_rows({.size = c.size,
                 .left = {.data = a.data(), .at = left.data(), .summed = c.summed_left},
                 .right = {.data = b.data(), .step = right_length + 1, .summed = c.summed_right},
                 .out = {.data = out.data(), .at = to.data(), .add = c.add, .in_parts = c.in_parts}},
                scratch.data());
  EXPECT_EQ(std::count(scratch.end() - 16, scratch.end(), 77.f), 16);
  const std::vector<float> x = gathered(a.data(), left, left_length), before = gathered(expected.data(), to, n);
  std::vector<float> y = before;
  const bool within = c.add && c.in_parts;
  gemm(c.summed_left, !c.summed_right, m, n, k, 1.f, x.data(), left_length, b.data(), right_length + 1,
       within ? 1.f : 0.f, y.data(), n);
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j)
      expected[to[i] + j] = c.add && !within ? before[i * n + j] + y[i * n + j] : y[i * n + j];
  EXPECT_EQ(out, expected);
}

TEST(RowProducts, HaveTheLibrarysBits) {
  if (!multiplies_rows({256, 256, 256})) GTEST_SKIP() << "the library sums in another order here";
  Random random{std::mt19937(5)};
  for (int round = 0; round < 40; ++round) {
    Case c{.size = {random.between(3, 530), random.between(16, 700), random.between(1, 1500)},
           .summed_left = random.between(0, 1) == 1,
           .summed_right = random.between(0, 1) == 1,
           .add = random.between(0, 1) == 1,
           .in_parts = random.between(0, 1) == 1};
    if (!multiplies_rows(c.size)) c.size = {random.between(120, 140), 270, random.between(380, 390)};
    SCOPED_TRACE(testing::Message() << c.size.m << " x " << c.size.n << " x " << c.size.k << " " << c.summed_left
                                    << c.summed_right << c.add << c.in_parts);
    check(random, c);
    if (testing::Test::HasFailure()) break;
  }
}

TEST(RowProducts, LeaveSmallOnesToTheLibrary) { EXPECT_FALSE(multiplies_rows({2, 512, 512})); }

}  // namespace
}  // namespace stretto
