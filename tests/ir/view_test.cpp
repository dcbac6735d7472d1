#include "stretto/ir/view.h"

#include <gtest/gtest.h>

#include "stretto/ops/input.h"

namespace stretto {
namespace {

TEST(View, OfAWholeValueIsContiguous) {
  Builder b;
  const Tensor x = input(b, "x", f32, {{"rows", 3}, {"columns", 4}});
  const View v = contiguous_view(b.graph, x.type());
  EXPECT_TRUE(v.contiguous());
  EXPECT_EQ(v.elements(), 12);
  EXPECT_EQ(v.strides, (std::vector<i64>{4, 1}));
  EXPECT_EQ(v.stride(x.type().dims[0]), 4);
  EXPECT_EQ(v.size(x.type().dims[1]), 4);
}

// Columns 1 and 2 of it, transposed: {part, rows}.
TEST(View, OfAViewKeepsItsStrides) {
  Builder b;
  const Tensor x = input(b, "x", f32, {{"rows", 3}, {"columns", 4}});
  const View whole = contiguous_view(b.graph, x.type());
  const DimSet dims = b.intern(Dims{{"part", 2}, {"rows", 3}});
  const ViewMap map{.from = {1, 0}, .start = {0, 1}};
  const View part = sub_view(whole, map, dims, b.graph);
  EXPECT_EQ(part.sizes, (std::vector<i64>{2, 3}));
  EXPECT_EQ(part.strides, (std::vector<i64>{1, 4}));
  EXPECT_FALSE(part.contiguous());
  EXPECT_EQ(part.elements(), 6);
  EXPECT_EQ(start_of(whole, map), 1);
}

}  // namespace
}  // namespace stretto
