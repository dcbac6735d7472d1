// What take_apart leaves out, merges and replaces, on steps of a few nodes written by hand.
#include "stretto/shard/inner/take_apart.h"

#include <gmock/gmock.h>

#include <functional>

#include "stretto/ops/all.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/param.h"

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Dim rows{.name = "rows", .size = 8}, cols{.name = "cols", .size = 8}, cols_2{.name = "cols_2", .size = 8};

// A step of one parameter x{rows cols}, and what `make` makes of it as outputs.
StepGraph small_step(const std::function<std::vector<Tensor>(Tensor)>& make) {
  Builder b;
  const Tensor x = b.emit(param_op, {}, ParamAttrs{"x", f32, b.intern(Dims{rows, cols})});
  StepGraph s{.params = {x.value}};
  for (const Tensor& t : make(x)) s.outputs.push_back({.name = "out", .value = t.value});
  s.graph = std::move(b.graph);
  return s;
}

struct Apart {
  StepGraph step;
  std::vector<Fault> faults;
  std::vector<std::string> ops() const {
    std::vector<std::string> names;
    for (const Node& n : step.graph.nodes) names.emplace_back(n.op->name);
    return names;
  }
};
Apart apart(const StepGraph& s, const Layout& layout = {}) {
  Apart r;
  const DimAxes axes = resolve(s.graph.dims, {{"a", 2}, {"b", 2}}, layout, r.faults);
  r.step = take_apart(s, axes, r.faults);
  return r;
}

TEST(NeededNodes, WhatOutputsAndGradientsDependOnAndAllArguments) {
  StepGraph s = small_step([](Tensor x) { return std::vector{gelu(x), -x, exp(x)}; });
  s.gradients = {{.value = s.outputs[OutputId(2)].value}};
  s.outputs.resize(1);
  const IdVector<NodeId, bool> needed = needed_nodes(s);
  EXPECT_THAT(needed.list(), ElementsAre(true, true, false, true));
  s.outputs.clear(), s.gradients.clear();
  EXPECT_TRUE(needed_nodes(s)[s.params[ParamId(0)].node]) << "parameters keep their numbers";
}

TEST(TakeApart, WhatNothingNeedsIsLeftOut) {
  StepGraph s = small_step([](Tensor x) { return std::vector{gelu(x), -x}; });
  s.outputs.erase(OutputId(0));
  const Apart r = apart(s);
  EXPECT_THAT(r.ops(), ElementsAre("param", "neg"));
  EXPECT_EQ(r.step.outputs[OutputId(0)].value, (Value{NodeId(1), 0})) << "renumbered";
  EXPECT_EQ(r.step.params[ParamId(0)], (Value{NodeId(0), 0}));
}

TEST(TakeApart, EqualRenamesOfOnePieceAndPhaseAreOne) {
  const auto twice = [](Tensor x) { return std::vector{rename(x, cols, cols_2), rename(x, cols, cols_2)}; };
  StepGraph s = small_step(twice);
  EXPECT_THAT(apart(s).ops(), ElementsAre("param", "rename"));
  EXPECT_EQ(apart(s).step.outputs[OutputId(0)].value, apart(s).step.outputs[OutputId(1)].value);
  s.graph.nodes[2].backward = true;
  EXPECT_THAT(apart(s).ops(), ElementsAre("param", "rename", "rename"));
  s.graph.nodes[2].backward = false;
  s.graph.nodes[2].piece = 1;
  EXPECT_THAT(apart(s).ops(), ElementsAre("param", "rename", "rename"));
}

TEST(TakeApart, AnOpWhoseDimIsSplitIsReplacedByWhatItIsMadeOf) {
  const StepGraph s = small_step([](Tensor x) { return std::vector{softmax(x, cols)}; });
  EXPECT_THAT(apart(s, {{"rows", "a"}}).ops(), ElementsAre("param", "softmax")) << "rows are independent";
  const Apart r = apart(s, {{"cols", "a"}});
  EXPECT_THAT(r.faults, IsEmpty());
  EXPECT_THAT(r.ops(), testing::AllOf(testing::Contains("exp"), testing::Not(testing::Contains("softmax"))));
  EXPECT_EQ(r.step.graph.type(r.step.outputs[OutputId(0)].value), s.graph.type(s.outputs[OutputId(0)].value));
  EXPECT_THAT(verify(r.step.graph), IsEmpty());
}

TEST(TakeApart, TwoDimsOfOneOpOnOneAxisAreReported) {
  const StepGraph s = small_step([](Tensor x) { return std::vector{gelu(x)}; });
  const Apart r = apart(s, {{"rows", "a"}, {"cols", "a"}});
  ASSERT_EQ(r.faults.size(), 2u) << "the parameter and gelu";
  EXPECT_THAT(r.faults[1].str(),
              HasSubstr("dims 'rows' and 'cols' of gelu{rows=8 cols=8} (gelu) both lie on axis 'a'"));
}

// Before and after are two spaces: shards move from one to the other.
TEST(TakeApart, ARenameMayGiveAnAxisFromOneDimToAnother) {
  const StepGraph s = small_step([](Tensor x) { return std::vector{rename(x, cols, cols_2)}; });
  EXPECT_THAT(apart(s, {{"rows", "a"}, {"cols_2", "b"}}).faults, IsEmpty());
  EXPECT_EQ(apart(s, {{"rows", "a"}, {"cols_2", "a"}}).faults.size(), 1u);
}

}  // namespace
}  // namespace stretto
