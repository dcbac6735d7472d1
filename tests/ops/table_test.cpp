// Every op of the table has all its parts.
#include <gtest/gtest.h>

#include <algorithm>

#include "stretto/ir/op.h"
#include "stretto/kernels/kernel.h"

namespace stretto {
namespace {

TEST(OpTable, EveryOpHasAllParts) {
  for (const Op* op : all_ops()) {
    SCOPED_TRACE(op->name);
    EXPECT_TRUE(op->infer) << "no type rule";
    EXPECT_NE(bool(op->vjp), op->no_gradient) << "either a gradient or no_gradient";
    EXPECT_TRUE(op->spread) << "no placement rule";
    EXPECT_TRUE(op->cost) << "no cost";
    EXPECT_TRUE(op->examples) << "no examples";
    EXPECT_EQ(bool(op->key), bool(op->rekeyed)) << "a random op has both";
    EXPECT_EQ(bool(op->collective), op->collective_kind.has_value()) << "a collective has both";
    EXPECT_FALSE(op->view && op->into);
    EXPECT_FALSE(op->pointwise && op->group) << "a group is made of pointwise ops";
    EXPECT_TRUE(op->view || op->collective || op->leaf != Leaf::none || !cpu_kernels(*op).empty()) << "no kernel";
    EXPECT_TRUE(!(op->view || op->collective) || cpu_kernels(*op).empty()) << "views and collectives are no kernels";
    EXPECT_TRUE(cpu_kernels(*op).empty() || !cpu_kernels(*op).back().accepts)
        << "the last kernel is the reference: it takes everything";
  }
}

TEST(OpTable, NamesAreUniqueAndSorted) {
  std::vector<std::string_view> names;
  for (const Op* op : all_ops()) names.push_back(op->name);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(OpTable, ExamplesUseTheirOp) {
  for (const Op* op : all_ops())
    for (DType type : {f32, f64}) {
      SCOPED_TRACE(op->name);
      Examples e;
      e.dtype = type;
      op->examples(e);
      EXPECT_FALSE(e.cases.empty());
      EXPECT_TRUE(std::any_of(e.builder.graph.nodes.begin(), e.builder.graph.nodes.end(),
                              [&](const Node& n) { return n.op == op; }));
      EXPECT_TRUE(verify(e.builder.graph).empty());
    }
}

// Placement and cost rules run on every example node and name only dims and operands that exist.
TEST(OpTable, RulesFitTheirExamples) {
  for (const Op* op : all_ops()) {
    Examples e;
    op->examples(e);
    const Graph& g = e.builder.graph;
    for (const Node& n : g.nodes) {
      SCOPED_TRACE(n.op->name);
      const OpCall call{g, n};
      DimSet space;
      for (int i = 0; i < call.inputs(); ++i) space = joined(space, call.in(i).dims);
      for (const Type& t : n.results) space = joined(space, t.dims);
      const Spread s = n.op->spread(call);
      space = joined(space, s.extra);
      for (const auto& [d, how] : s.reduce) EXPECT_TRUE(contains(space, d));
      for (DimId d : s.serial) EXPECT_TRUE(contains(space, d));
      for (int i : s.linear) EXPECT_TRUE(i >= 0 && i < call.inputs());
      const Cost c = n.op->cost(call);
      EXPECT_GE(c.flops, 0);
      EXPECT_GE(c.read, 0);
      EXPECT_GE(c.written, 0);
      const auto* product = std::get_if<ProductShape>(&c.shape);
      EXPECT_TRUE(product || n.op->costly != Costly::product) << "a product says of what";
      if (product) {
        EXPECT_DOUBLE_EQ(c.flops, 2 * product->batches * product->m * product->n * product->k);
      }
      if (n.op->view)
        for (std::size_t r = 0; r < n.results.size(); ++r) {
          const ViewMap map = n.op->view(call, int(r));
          EXPECT_EQ(map.from.size(), n.results[r].dims.size());
          EXPECT_EQ(map.start.size(), call.in(0).dims.size());
        }
      if (n.op->into)
        for (int i = 0; i < call.inputs(); ++i) {
          const ViewMap map = n.op->into(call, i);
          EXPECT_EQ(map.from.size(), call.in(i).dims.size());
          EXPECT_EQ(map.start.size(), call.out().dims.size());
        }
      if (n.op->key) {
        EXPECT_EQ(n.op->key(n.op->rekeyed(n.attrs, {.name = "another"})).name, "another");
        EXPECT_EQ(n.op->key(n.op->rekeyed(n.attrs, {.number = 3})).number, 3);
      }
    }
  }
}

}  // namespace
}  // namespace stretto
