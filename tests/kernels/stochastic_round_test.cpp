#include "stretto/ops/stochastic_round.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "stretto/ops/input.h"
#include "stretto/ops/ops.h"
#include "support/evaluate.h"

namespace stretto {
namespace {
using test::Buffer;

// One row of numbers through the op.
Buffer rounded_row(const std::vector<double>& x, Now now, std::string name = "s", i64 which = 0) {
  Builder b;
  const Tensor t = input(b, "x", f32, Dim{"x", std::ssize(x)});
  const Tensor y = stochastic_round(t, {.name = std::move(name), .which = which});
  Buffer in(b.graph, t.type());
  for (i64 i = 0; i < in.count(); ++i) in.set(i, x[std::size_t(i)]);
  test::Values values{{t.value, in}};
  evaluate(b.graph, values, {.now = now});
  return values[y.value];
}

TEST(StochasticRound, LosesNothingOnAverage) {
  constexpr double x = 1 + 0.3 * 0x1p-7;  // three tenths of the way to the next
  const Buffer y = rounded_row(std::vector<double>(65536, x), {.seed = 4, .step = 2});
  double up = 0;
  for (i64 i = 0; i < y.count(); ++i) {
    ASSERT_TRUE(y.at(i) == 1 || y.at(i) == 1 + 0x1p-7) << y.at(i);
    up += y.at(i) > 1;
  }
  EXPECT_NEAR(up / 65536, 0.3, 4 * std::sqrt(0.3 * 0.7 / 65536));  // four standard deviations
}

TEST(StochasticRound, LeavesWhatBf16Has) {
  const float largest = std::bit_cast<float>(0x7F7F0000), smallest = std::bit_cast<float>(0x00010000);
  std::vector<double> exact{0, 1, -1.5, 0x1p-100, largest, -largest, smallest, INFINITY, -INFINITY};
  exact.resize(1000, -0.15625);
  const Buffer y = rounded_row(exact, {.seed = 1, .step = 1});
  for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_EQ(y.at(i64(i)), exact[i]);
  const Buffer nan = rounded_row(std::vector<double>(100, NAN), {.seed = 1, .step = 1});
  for (i64 i = 0; i < 100; ++i) EXPECT_TRUE(std::isnan(nan.at(i)));
  // Not a number by its lowest bit alone, which is cut off.
  const Buffer low = rounded_row(std::vector<double>(100, double(std::bit_cast<float>(0x7F800001))), {.seed = 1});
  for (i64 i = 0; i < 100; ++i) EXPECT_TRUE(std::isnan(low.at(i)));
}

TEST(StochasticRound, IsAFunctionOfSeedNameNumberAndStep) {
  const std::vector<double> x(500, 1 + 0x1p-8);
  const auto bits = [&](Now now, std::string name = "s", i64 which = 0) {
    const Buffer y = rounded_row(x, now, std::move(name), which);
    std::vector<double> all;
    for (i64 i = 0; i < y.count(); ++i) all.push_back(y.at(i));
    return all;
  };
  const auto first = bits({.seed = 1, .step = 1});
  EXPECT_EQ(first, bits({.seed = 1, .step = 1}));
  EXPECT_NE(first, bits({.seed = 2, .step = 1}));
  EXPECT_NE(first, bits({.seed = 1, .step = 2}));
  EXPECT_NE(first, bits({.seed = 1, .step = 1}, "t"));
  EXPECT_NE(first, bits({.seed = 1, .step = 1}, "s", 1));
}

// Of a matrix of 12 x 20 a rank has columns 10 to 19, and of these, flat, the elements from 30 on: each becomes what it
// becomes in the whole, by every kernel.
TEST(StochasticRound, DoesNotDependOnParts) {
  const Now now{.seed = 1, .step = 3};
  const std::vector<double> all(240, 1 + 0x1p-8);
  const Buffer whole = rounded_row(all, now, "m");
  Builder b;
  const Dim rows{"rows", 12}, columns{.name = "columns", .size = 10, .logical = 20, .axes = {"tensor"}};
  const Dim flat{.name = "flat", .size = 30, .logical = 120, .axes = {"data"}};
  const Mesh mesh{{"data", 4}, {"tensor", 2}};
  const Tensor x = input(b, "x", f32, flat), y = stochastic_round(x, {.name = "m"}, {rows, columns}, mesh);
  const Node& n = b.graph.node(y.value);
  ASSERT_EQ(n.operands.size(), 2u);
  const View part = on_rank(contiguous_view(b.graph, x.type()), b.graph, mesh, {1, 1});
  Call call{.graph = b.graph, .node = n, .in = {part, View{.dtype = i32}}, .out = {part}};
  call.out[0].dtype = bf16;
  Buffer in(f32, 30), block(i32, 1);
  for (i64 i = 0; i < 30; ++i) in.set(i, 1 + 0x1p-8);
  block.set(0, 1);
  for (const Kernel& k : cpu_kernels(stochastic_round_op)) {
    Buffer out(bf16, 30);
    test::run_kernel(k, call, {in.data(), block.data()}, {out.data()},
                     {.seed = 1, .step = 3, .key = hash_of(std::string_view("m"))});
    for (i64 i = 0; i < 30; ++i) {
      const i64 element = 30 + i, there = element / 10 * 20 + 10 + element % 10;
      EXPECT_EQ(out.at(i), whole.at(there)) << k.name << " " << i;
    }
  }
}

}  // namespace
}  // namespace stretto
