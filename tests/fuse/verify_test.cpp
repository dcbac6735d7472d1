// Calls that are broken on purpose: the verifier names each of the faults.
#include <gtest/gtest.h>

#include "stretto/fuse/fuse.h"
#include "stretto/fuse/inner/group.h"
#include "stretto/ops/add.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/fused.h"
#include "stretto/ops/input.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/sum.h"

namespace stretto {
namespace {

const Dim p{"p", 3}, q{"q", 3};

std::string faults(const Calls& c) {
  std::string all;
  for (const Fault& f : verify(c)) all += f.str() + "\n";
  return all;
}

// sum(exp(x)): a temporary between two calls.
struct BrokenCalls : testing::Test {
  BrokenCalls() {
    Builder b;
    b.graph.outputs = {sum(exp(input(b, "0", f32, {p, q})), {p}).value};
    calls = fuse(b.graph, ResultMemories(1));
  }
  KernelCall& first() { return calls.calls[CallId(0)]; }
  KernelCall& second() { return calls.calls[CallId(1)]; }
  Calls calls;
};

TEST_F(BrokenCalls, AreNotWhatFuseMakes) {
  ASSERT_EQ(calls.calls.size(), 2u);
  EXPECT_EQ(faults(calls), "");
  EXPECT_EQ(calls.str(), "  t1 = exp(a0)\n  r2 = sum(t1) over=p\n");
}

TEST_F(BrokenCalls, OperandWithoutABuffer) {
  second().in[0].buffer.reset();
  EXPECT_EQ(faults(calls), "[fuse sum] operand 0 is read before it is written\n");
}

TEST_F(BrokenCalls, OperandOfALaterCall) {
  std::swap(first(), second());
  EXPECT_EQ(faults(calls), "[fuse sum] operand 0 is read before it is written\n");
}

TEST_F(BrokenCalls, OperandBeyondItsBuffer) {
  second().in[0].start = 4;
  EXPECT_EQ(faults(calls), "[fuse sum] an operand reaches beyond its buffer\n");
}

TEST_F(BrokenCalls, ResultBeforeItsBuffer) {
  second().out[0].start = -4;
  EXPECT_EQ(faults(calls), "[fuse sum] a result reaches beyond its buffer\n");
}

TEST_F(BrokenCalls, ViewOfOtherDims) {
  std::swap(first().out[0].view.dims[0], first().out[0].view.dims[1]);
  EXPECT_EQ(faults(calls), "[fuse exp] a result has other dims than its view\n");
}

TEST(Verify, ResultOverElementsThatAreReadLater) {
  Builder b;
  const Tensor x = input(b, "0", f32, {p, q});
  b.graph.outputs = {(x + rename(x, {{p, q}, {q, p}})).value};
  Calls c = fuse(b.graph, ResultMemories(1));
  c.calls[CallId(0)].out[0].buffer = c.calls[CallId(0)].in[0].buffer;
  EXPECT_EQ(faults(c), "[fuse add] a result is written over elements of an operand that are read later\n");
}

// (e + x) + sum(e): the sum stands between the two additions, which the first of them does not need.
TEST(GroupPointwise, KeepsTheOrderOfArgumentsAndWhatLeavesAGroup) {
  Builder b;
  const Tensor x = input(b, "0", f32, {p, q}), e = exp(x), y = input(b, "1", f32, {p, q}), z = e + y;
  b.graph.outputs = {(z + sum(e, {p})).value};
  const Graph g = group_pointwise(b.graph, {});
  EXPECT_TRUE(verify(g).empty());
  std::vector<std::string_view> ops;
  for (const Node& n : g.nodes) ops.push_back(n.op->name);
  EXPECT_EQ(ops, (std::vector<std::string_view>{"input", "input", "fused", "sum", "add"}));
  EXPECT_EQ(g.nodes[2].results.size(), 2u);  // e for the sum, e + y for the last addition
}

TEST(GroupPointwise, LeavesAloneWhatItIsTold) {
  Builder b;
  const Tensor e = exp(input(b, "0", f32, {p})), f = exp(e), g = exp(f);
  b.graph.outputs = {g.value};
  EXPECT_EQ(group_pointwise(b.graph, {}).nodes.size(), 2u);
  EXPECT_EQ(group_pointwise(b.graph, {f.value}).nodes.size(), 4u);
}

}  // namespace
}  // namespace stretto
