#include <gtest/gtest.h>

#include "plain_collective.h"
#include "stretto/ops/all_gather.h"
#include "stretto/ops/all_reduce.h"
#include "stretto/ops/all_to_all.h"
#include "stretto/ops/input.h"
#include "stretto/ops/reduce_scatter.h"

namespace stretto {
namespace {

using Sizes = std::vector<i64>;

struct Fixture : testing::Test {
  Builder b;
  Mesh mesh{{"pipe", 3}, {"data", 2}, {"tensor", 3}};
  Tensor x(const Dims& dims, DType dtype = f32) { return input(b, "x", dtype, dims); }
  CollectiveShape shape(Tensor t) { return shape_of(b.graph, b.graph.node(t.value), mesh); }
  DimId id(const char* name, i64 size) { return b.intern(Dim{name, size}); }
};
using CollectiveShapes = Fixture;

TEST_F(CollectiveShapes, AllReduce) {
  const CollectiveShape s = shape(all_reduce(x({{"a", 4}, {"b", 5}}, f64), {"data", "tensor"}, Reduce::max));
  EXPECT_EQ(s, (CollectiveShape{.kind = CollectiveKind::reduce,
                                .dtype = f64,
                                .how = Reduce::max,
                                .members = 6,
                                .axes = {"data", "tensor"},
                                .sizes = {4, 5},
                                .in_strides = {5, 1},
                                .out_strides = {5, 1}}));
  EXPECT_EQ(merged(s).sizes, Sizes{20});
  EXPECT_EQ(s.str(), "all_reduce (max) over data,tensor=6: f64 {4 5}");
}

TEST_F(CollectiveShapes, AllGatherOfAnInnerDim) {
  const CollectiveShape s =
      shape(all_gather(x({{"a", 4}, {"part", 2}, {"c", 5}}), id("part", 2), id("whole", 6), {"tensor"}));
  EXPECT_EQ(s.kind, CollectiveKind::gather);
  EXPECT_EQ(s.members, 3);
  EXPECT_EQ(s.sizes, (Sizes{4, 2, 5}));
  EXPECT_EQ(s.in_strides, (Sizes{10, 5, 1}));
  EXPECT_EQ(s.out_strides, (Sizes{30, 5, 1}));
  EXPECT_EQ(s.out_step, 10);
  EXPECT_EQ(s.in_step, 0);
  EXPECT_EQ(merged(s).sizes, (Sizes{4, 10}));
  EXPECT_EQ(s.operand(), 40);
  EXPECT_EQ(s.result(), 120);
}

TEST_F(CollectiveShapes, ReduceScatterOfAnInnerDim) {
  const CollectiveShape s =
      shape(reduce_scatter(x({{"a", 4}, {"whole", 6}, {"c", 5}}), id("whole", 6), id("part", 2), {"tensor"}));
  EXPECT_EQ(s.kind, CollectiveKind::scatter);
  EXPECT_EQ(s.sizes, (Sizes{4, 2, 5}));
  EXPECT_EQ(s.in_strides, (Sizes{30, 5, 1}));
  EXPECT_EQ(s.out_strides, (Sizes{10, 5, 1}));
  EXPECT_EQ(s.in_step, 10);
  EXPECT_EQ(s.out_step, 0);
}

TEST_F(CollectiveShapes, AllToAll) {
  const CollectiveShape s = shape(all_to_all(x({{"seq", 4}, {"heads", 6}, {"head", 5}}), id("seq", 4), id("whole", 12),
                                             id("heads", 6), id("some", 2), {"tensor"}));
  EXPECT_EQ(s.kind, CollectiveKind::exchange);
  EXPECT_EQ(s.sizes, (Sizes{4, 2, 5}));
  EXPECT_EQ(s.in_strides, (Sizes{30, 5, 1}));
  EXPECT_EQ(s.out_strides, (Sizes{10, 5, 1}));
  EXPECT_EQ(s.in_step, 10);
  EXPECT_EQ(s.out_step, 40);
}

TEST_F(CollectiveShapes, FlatStorageIsPadded) {
  const CollectiveShape gather =
      shape(all_gather_flat(x({{"flat", 7}}), b.intern(Dims{{"a", 4}, {"b", 5}}), {"tensor"}));
  EXPECT_EQ(gather.sizes, Sizes{7});
  EXPECT_EQ(gather.out_step, 7);
  EXPECT_EQ(gather.valid, 20);
  EXPECT_EQ(gather.box_valid(1), 7);
  EXPECT_EQ(gather.box_valid(2), 6);
  const CollectiveShape scatter = shape(reduce_scatter_flat(x({{"a", 4}, {"b", 5}}), id("block", 11), {"tensor"}));
  EXPECT_EQ(scatter.in_step, 11);
  EXPECT_EQ(scatter.valid, 20);
  EXPECT_EQ(scatter.box_valid(1), 9);
  EXPECT_EQ(scatter.box_valid(2), 0);
}

TEST_F(CollectiveShapes, ViewsKeepTheirStrides) {
  const Tensor r = all_reduce(x({{"a", 4}, {"b", 5}}), {"data"});
  View in = contiguous_view(b.graph, r.type()), out = in;
  in.strides = {9, 1};
  const CollectiveShape s = shape_of(b.graph, b.graph.node(r.value), in, out, mesh);
  EXPECT_EQ(s.in_strides, (Sizes{9, 1}));
  EXPECT_EQ(s.out_strides, (Sizes{5, 1}));
  EXPECT_EQ(merged(s).sizes, (Sizes{4, 5}));
}

TEST_F(CollectiveShapes, AnotherNumberOfRanksIsRefused) {
  const Tensor g = all_gather(x({{"part", 2}}), id("part", 2), id("whole", 6), {"data"});
  try {
    shape(g);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "[all_gather] all_gather over data=2: f32 {2} does not fit {part=2} -> {whole=6}; hint: these axes "
                 "have 2 ranks in mesh pipe=3 data=2 tensor=3");
  }
}

TEST(Tree, FirstHalfIsTheLargestPowerOfTwoBelow) {
  const auto text = [](int n) {
    return tree_reduce(
        0, n, [](int m) { return std::to_string(m); },
        [](const std::string& a, const std::string& b) { return "(" + a + b + ")"; });
  };
  EXPECT_EQ(text(1), "0");
  EXPECT_EQ(text(3), "((01)2)");
  EXPECT_EQ(text(5), "(((01)(23))4)");
  EXPECT_EQ(text(6), "(((01)(23))(45))");
  EXPECT_EQ(text(8), "(((01)(23))((45)(67)))");
  EXPECT_EQ(tree_sum(5, [](int m) { return m; }), 10);
}

}  // namespace
}  // namespace stretto
