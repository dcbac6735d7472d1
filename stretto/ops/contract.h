// Sums of products over named dims: matrix products of any shape.
//
//   contract(x, w, model)                       x{batch seq model} w{model ff} -> {batch seq ff}
//   contract(x, w, model, along(experts))       both have `experts`: one product per expert
#pragma once
#include <algorithm>

#include "stretto/ir/op.h"

namespace stretto {

struct ContractAttrs {
  DimSet over, along, out;  // summed; kept though both operands have them; the result's dims in order
  static constexpr void fields(auto& s, auto f) {
    f("over", s.over);
    f("along", s.along);
    f("out", s.out);
  }
};

struct Along {
  Dims dims;
};
inline Along along(Dims dims) { return {std::move(dims)}; }

// A dim of both operands must be named in `over` or in `along`. Result: a's free and kept dims in a's order, then b's.
Tensor contract(Tensor a, Tensor b, Dims over, Along along = {});
// The same with the order of the result's dims given. `over` may be empty here: an outer product.
Tensor contract_into_order(Tensor a, Tensor b, const DimSet& over, const DimSet& along, const DimSet& out);

// The block that kernels pack when no operand has a unit stride where a matrix product needs one.
struct ContractBlock {
  i64 m = 0, n = 0, k = 0;
  std::size_t bytes(DType t) const { return std::size_t(m * k + k * n + m * n) * size_of(t); }
};
inline ContractBlock contract_block(i64 m, i64 n, i64 k) {
  return {std::min<i64>(m, 128), std::min<i64>(n, 128), std::min<i64>(k, 256)};
}

}  // namespace stretto
