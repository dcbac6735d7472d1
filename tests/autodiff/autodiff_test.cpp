#include "stretto/autodiff/autodiff.h"

#include <gtest/gtest.h>

#include "stretto/ops/boundary.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/input.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/sum.h"
#include "support/evaluate.h"

namespace stretto {
namespace {

const Dim n{"n", 3};

// d/dw of sum(exp(x) * w), which is exp(x).
TEST(Autodiff, GradientIsTheRest) {
  Builder b;
  const Tensor x = input(b, "x", f64, {n}), w = input(b, "w", f64, {n}), seed = input(b, "seed", f64, {});
  const Root root{sum(exp(x) * w, {n}), seed};
  const std::vector<Gradient> g = differentiate(b, {{root}}, {{w}});
  ASSERT_EQ(g.size(), 1u);
  EXPECT_EQ(g[0].of.value, w.value);
  EXPECT_EQ(g[0].grad.type(), w.type());
  test::Values values;
  for (const Tensor& t : {x, w}) {
    test::Buffer& v = values[t.value] = test::Buffer(b.graph, t.type());
    for (int i = 0; i < 3; ++i) v.set(i, 0.5 * i - 0.25);
  }
  (values[seed.value] = test::Buffer(b.graph, seed.type())).set(0, 2);
  test::evaluate(b.graph, values);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(values[g[0].grad.value].at(i), 2 * std::exp(0.5 * i - 0.25), 1e-12);
}

TEST(Autodiff, OneGradientPerPieceThatUsesAValue) {
  Builder b;
  const Tensor x = input(b, "x", f64, {n}), w = input(b, "w", f64, {n}), seed = input(b, "seed", f64, {});
  const Tensor y = boundary(x * w);
  const Root root{sum(y * w, {n}), seed};
  const std::vector<Gradient> g = differentiate(b, {{root}}, {{w}});
  ASSERT_EQ(g.size(), 2u);
  EXPECT_EQ(g[0].piece, 0);
  EXPECT_EQ(g[1].piece, 1);
  for (const Gradient& one : g) {
    EXPECT_TRUE(b.graph.node(one.grad.value).backward);
    EXPECT_EQ(b.graph.node(one.grad.value).piece, one.piece);
  }
}

TEST(Autodiff, WhatNoRootDependsOnHasNone) {
  Builder b;
  const Tensor x = input(b, "x", f64, {n}), w = input(b, "w", f64, {n}), seed = input(b, "seed", f64, {});
  const Root root{sum(exp(x), {n}), seed};
  EXPECT_TRUE(differentiate(b, {{root}}, {{w}}).empty());
}

}  // namespace
}  // namespace stretto
