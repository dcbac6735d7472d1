#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "stretto/ops/input.h"
#include "stretto/ops/max.h"
#include "stretto/ops/sum.h"
#include "support/evaluate.h"

namespace stretto {
namespace {
using test::Buffer;
using test::Values;

Buffer random_values(const Tensor& x, unsigned seed, double lo = -1) {
  Buffer b(x.builder->graph, x.type());
  std::mt19937 random(seed);
  for (i64 i = 0; i < b.count(); ++i) b.set(i, std::uniform_real_distribution<double>(lo, 1)(random));
  return b;
}

// Long sums in f32 are as good as sums in f64, rounded once.
TEST(Sum, OfManyIsAccurate) {
  Builder b;
  const Dim rows{"rows", 3000}, columns{"columns", 70};
  const Tensor x = input(b, "x", f32, {rows, columns});
  const Tensor down = sum(x, rows), across = sum(x, columns), all = sum_all(x);
  Values values{{x.value, random_values(x, 1, 0.5)}};
  evaluate(b.graph, values);
  const Buffer& v = values[x.value];
  double total = 0;
  for (i64 c = 0; c < 70; ++c) {
    double column = 0;
    for (i64 r = 0; r < 3000; ++r) column += v.at(r * 70 + c);
    EXPECT_NEAR(values[down.value].at(c), column, 1e-7 * column);
    total += column;
  }
  for (i64 r = 0; r < 3000; ++r) {
    double row = 0;
    for (i64 c = 0; c < 70; ++c) row += v.at(r * 70 + c);
    EXPECT_NEAR(values[across.value].at(r), row, 1e-7 * row);
  }
  EXPECT_NEAR(values[all.value].at(0), total, 1e-7 * total);
}

TEST(Sum, AndMaxSkipPadding) {
  Builder b;
  const Dim a{"a", 2}, v = Dim{"v", 5}.padded(8);
  const Tensor x = input(b, "x", f32, {a, v});
  const Tensor total = sum(x, v), largest = max(x, v), both = sum_all(x);
  Buffer buffer(b.graph, x.type());
  for (i64 i = 0; i < 16; ++i) buffer.set(i, i % 8 < 5 ? -double(i) : std::nan(""));
  Values values{{x.value, buffer}};
  evaluate(b.graph, values);
  EXPECT_EQ(values[total.value].at(0), -10);
  EXPECT_EQ(values[total.value].at(1), -50);
  EXPECT_EQ(values[largest.value].at(0), 0);
  EXPECT_EQ(values[largest.value].at(1), -8);
  EXPECT_EQ(values[both.value].at(0), -60);
}

TEST(Max, KeepsNaN) {
  Builder b;
  const Dim a{"a", 40};
  const Tensor x = input(b, "x", f32, a), y = max(x, a);
  for (i64 place : {0, 1, 15, 16, 39}) {
    Buffer buffer = random_values(x, 5);
    buffer.set(place, std::nan(""));
    Values values{{x.value, buffer}};
    evaluate(b.graph, values);
    EXPECT_TRUE(std::isnan(values[y.value].at(0)));
  }
}

// The same numbers at another address have the same sum, bit for bit.
TEST(Sum, DoesNotDependOnAlignment) {
  Builder b;
  const Dim rows{"rows", 7}, columns{"columns", 37};
  const Tensor x = input(b, "x", f32, {rows, columns});
  for (const Tensor& y : {sum(x, rows), sum(x, columns), sum_all(x)}) {
    const Call call = test::contiguous_call(b.graph, b.graph.node(y.value));
    const Buffer values = random_values(x, 9);
    std::vector<u64> first;
    for (i64 shift = 0; shift < 16; ++shift) {
      Buffer moved(f32, values.count() + 16), out(b.graph, y.type());
      for (i64 i = 0; i < values.count(); ++i) moved.set(i + shift, values.at(i));
      test::run_kernel(choose_kernel(call), call, {moved.element(shift)}, {out.data()});
      std::vector<u64> bits;
      for (i64 i = 0; i < out.count(); ++i) bits.push_back(out.bits(i));
      if (shift == 0) first = bits;
      EXPECT_EQ(bits, first);
    }
  }
}

}  // namespace
}  // namespace stretto
