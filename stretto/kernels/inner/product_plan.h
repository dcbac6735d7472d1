// A contraction as products of matrices, on the operands' memory as it lies: which dims collapse to rows, columns and
// sums, and what is looped over around them.
//
//   if (const std::optional<ProductPlan> p = product_plan(call)) ...       // none: no operand has a unit stride
#pragma once
#include <optional>
#include <vector>

#include "stretto/kernels/cpu/nest.h"
#include "stretto/kernels/kernel.h"

namespace stretto {

// Dims that a, b and c step through as if they were one.
struct ProductAxis {
  i64 size = 1, a = 0, b = 0, c = 0;
};
struct ProductAxes {
  enum Group : std::size_t { rows, columns, summed, kept };
  std::vector<ProductAxis> axes[4];
};
ProductAxes product_axes(const Call&);

// Row-major, or the transpose of what is.
struct ProductMatrix {
  bool transposed = false;
  i64 leading = 1;
  i64 at(i64 row, i64 column) const { return transposed ? column * leading + row : row * leading + column; }
};

struct ProductPlan {
  i64 m = 1, n = 1, k = 1;
  ProductMatrix a, b, c;
  Nest outer, inner;  // loops around the product: over its results, over further sums; arrays: a, b, c
  double calls = 0;
};
// The choice of one axis per group that leaves the fewest products to loop over.
std::optional<ProductPlan> product_plan(const Call&);

}  // namespace stretto
