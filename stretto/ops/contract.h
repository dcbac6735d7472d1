// Sums of products over named dims: matrix products of any shape.
//
//   contract(x, w, model)                       x{batch seq model} w{model ff} -> {batch seq ff}
//   contract(x, w, model, along(experts))       both have `experts`: one product per expert
#pragma once
#include <algorithm>

#include "stretto/ir/op.h"

namespace stretto {

struct ContractAttrs {
  DimSet over, along, out;         // summed; kept though both operands have them; the result's dims in order
  std::vector<DType> result = {};  // f32, of bf16 operands: it stays what it was summed in; none: their type
  static constexpr void fields(auto& s, auto f) {
    f("over", s.over);
    f("along", s.along);
    f("out", s.out);
    f("result", s.result);
  }
};

struct Along {
  Dims dims;
};
inline Along along(Dims dims) { return {std::move(dims)}; }

// A dim of both operands must be named in `over` or in `along`. Result: a's free and kept dims in a's order, then b's.
Tensor contract(Tensor a, Tensor b, Dims over, Along along = {});
// The same for what must not be rounded (a router's scores): of bf16 operands, or where one is, the result is f32.
Tensor contract_wide(Tensor a, Tensor b, const Dims& over, const Along& along = {});
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

// The block of bf16 operands that is widened at a time. Large enough that widening is little beside multiplying.
inline ContractBlock widened_block(i64 m, i64 n, i64 k) {
  return {std::min<i64>(m, 1024), std::min<i64>(n, 1024), std::min<i64>(k, 256)};
}

}  // namespace stretto
