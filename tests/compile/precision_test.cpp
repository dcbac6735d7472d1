#include "stretto/compile/inner/precision.h"

#include <gmock/gmock.h>

#include "compile/two_layers.h"
#include "stretto/compile/inner/differentiated.h"
#include "stretto/ops/all.h"
#include "stretto/ops/cast.h"
#include "support/message.h"

namespace stretto {
namespace {

StepGraph in_bf16(const Model& model) { return in_precision(differentiated(trace_step(model, {.dtype = bf16}))); }

const Node& maker(const StepGraph& s, Value v) { return s.graph.node(v); }

TEST(Precision, OtherTypesAreLeftAlone) {
  for (const DType t : {f32, f64}) {
    const StepGraph s = differentiated(trace_step(test::two_layers, {.dtype = t}));
    EXPECT_EQ(in_precision(s).graph.hash(), s.graph.hash());
  }
}

TEST(Precision, GradientsAreSummedInF32AndOutputsAreNotRounded) {
  const StepGraph s = in_bf16(test::two_layers);
  ASSERT_FALSE(s.gradients.empty());
  for (const StepGraph::Grad& g : s.gradients) EXPECT_EQ(s.graph.type(g.value).dtype, f32);
  for (const StepGraph::Output& o : s.outputs) EXPECT_NE(s.graph.type(o.value).dtype, bf16);
}

Model product(double factor) {
  return [factor](Trace& t) {
    const Dim batch = t.batch("batch", 4), in{"in", 3}, out{"out", 2};
    const Tensor y = contract(t.input("x", {batch, in}), t.param("w", {in, out}), in);
    return mean_of(square(tanh(y + t.bias("b", out)) * factor));
  };
}

// A product that reaches its accumulator is not rounded on the way.
TEST(Precision, ProductsAndSumsGiveF32WhereItIsKept) {
  const StepGraph s = in_bf16(product(0.1));
  for (const StepGraph::Grad& g : s.gradients) {
    const Node& n = maker(s, g.value);
    EXPECT_TRUE(n.op->widened) << n.op->name;
    EXPECT_EQ(s.graph.type(n.operands[0]).dtype, bf16);
  }
}

// Of y + b, tanh, the factor and the square only the first one's operand was rounded.
TEST(Precision, PointwiseOpsHandOnWhatIsNotRounded) {
  const StepGraph s = in_bf16(product(0.1));
  int pointwise = 0;
  for (const Node& n : s.graph.nodes) {
    if (!n.op->pointwise || n.attrs.is<CastAttrs>()) continue;
    ++pointwise;
    EXPECT_NE(n.results[0].dtype, bf16) << n.op->name;
    const bool rounded = maker(s, n.operands[0]).attrs.is<CastAttrs>();
    EXPECT_FALSE(n.op->name == "square" && !n.backward && rounded);
  }
  EXPECT_GT(pointwise, 4);
}

// Numbers in formulas are not rounded to bf16: 0.1 would be 0.10009765625.
TEST(Precision, NumbersAreThoseOfF32) {
  const Model model = [](Trace& t) { return mean_of(t.input("x", {t.batch("batch", 4)}) * 0.1 * t.param("w", {})); };
  const StepGraph s = in_bf16(model);
  for (const Node& n : s.graph.nodes)
    for (const Value v : n.operands)
      EXPECT_FALSE(maker(s, v).op->leaf == Leaf::constant && s.graph.type(v).dtype == bf16);
}

TEST(Precision, WhatAnotherPieceReadsIsRounded) {
  const Model model = [](Trace& t) {
    const Dim batch = t.batch("batch", 4);
    Tensor x = boundary(tanh(t.input("x", {batch}) * t.param("w", {})));
    return mean_of(square(x * t.param("v", {})));
  };
  const StepGraph s = in_bf16(model);
  for (const Node& n : s.graph.nodes)
    for (const Value v : n.operands) {
      const bool travels = maker(s, v).piece != n.piece && !maker(s, v).op->given() && !s.graph.type(v).dims.empty();
      EXPECT_TRUE(!travels || s.graph.type(v).dtype == bf16) << n.op->name << " of " << maker(s, v).op->name;
    }
}

TEST(Precision, ByNames) {
  const auto dtype_of_w = [](std::vector<std::string> names) {
    const Model model = [](Trace& t) {
      Scope layer(t, "h", 3);
      const Dim batch = t.batch("batch", 4), in{"in", 3};
      return mean_of(contract(t.input("x", {batch, in}), t.param("router", in), in));
    };
    const Traced t = trace_step(model, {.dtype = bf16, .in_f32 = std::move(names)});
    EXPECT_EQ(in_precision(differentiated(t)).gradients.size(), 1u);
    return t.params[ParamId(0)].dtype;
  };
  EXPECT_EQ(dtype_of_w({}), bf16);
  for (const char* name : {"router", "h.3.router", "h", "3.router"}) EXPECT_EQ(dtype_of_w({name}), f32) << name;
  EXPECT_EQ(refusal_of([&] { dtype_of_w({"ruter"}); }),
            "[precision] no parameter is called 'ruter'; hint: did you mean 'router'?");
  EXPECT_EQ(refusal_of([&] { dtype_of_w({"rout"}); }).substr(0, 43), "[precision] no parameter is called 'rout'; ");
}

}  // namespace
}  // namespace stretto
