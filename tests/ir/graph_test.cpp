#include "stretto/ir/graph.h"

#include <gtest/gtest.h>

#include "stretto/ir/op.h"
#include "stretto/ops/add.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/input.h"
#include "stretto/ops/mul.h"

namespace stretto {
namespace {

// exp(x) * y + y, where nothing asks for a second exp.
struct Small {
  Builder b;
  const Dim batch{"batch", 8}, model{"model", 4};
  Tensor x = input(b, "x", f32, {batch, model}), y = input(b, "y", f32, {batch, model});
  Tensor unused = exp(y);
  Tensor out = exp(x) * y + y;
  Small() { b.graph.outputs = {out.value}; }
};

TEST(Graph, PruningKeepsWhatOutputsNeed) {
  Small s;
  MovedNodes moved;
  const Graph g = prune(s.b.graph, &moved);
  EXPECT_EQ(g.nodes.size(), s.b.graph.nodes.size() - 1);
  EXPECT_FALSE(moved[s.unused.value.node.value]);
  EXPECT_EQ(g.outputs[0].node, moved[s.out.value.node.value]);
  EXPECT_EQ(g.type(g.outputs[0]), s.b.graph.type(s.out.value));
  EXPECT_TRUE(verify(g).empty());
}

TEST(Graph, PruningMayKeepAKindOfNode) {
  Small s;
  s.b.graph.outputs = {s.unused.value};
  EXPECT_EQ(prune(s.b.graph).nodes.size(), 2u);                                         // y and its exp
  EXPECT_EQ(prune_keeping(s.b.graph, *s.b.graph.node(s.x.value).op).nodes.size(), 3u);  // and x
}

TEST(Graph, HashIsOfContentNotOfScopes) {
  Small a, b, c;
  b.b.graph.scopes[0] = "elsewhere";
  EXPECT_EQ(a.b.graph.hash(), b.b.graph.hash());
  c.b.graph.outputs = {c.unused.value};
  EXPECT_NE(a.b.graph.hash(), c.b.graph.hash());
}

TEST(Graph, VerifyNamesAnOperandThatComesLater) {
  Small s;
  s.b.graph.nodes[s.unused.value.node.value].operands = {s.out.value};
  ASSERT_FALSE(verify(s.b.graph).empty());
}

TEST(Graph, SizesAreThoseOfTheType) {
  const Small s;
  EXPECT_EQ(s.b.graph.elements(s.x.type()), 32);
  EXPECT_EQ(s.b.graph.bytes(s.x.type()), 128u);
  EXPECT_EQ(s.b.graph.str(s.x.type()), "{batch=8 model=4}");
}

}  // namespace
}  // namespace stretto
