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

// Does a product of rows x k by k x n have the bits of the same rows in a product of more rows? Small products may be
// made by other kernels, and those of bf16 are cut into blocks.
bool alike_by_rows(i64 rows, i64 n, i64 k, DType dtype);

// The block of bf16 operands that is put in the order of tiles at a time, for processors that multiply tiles. A result
// in bf16 is summed in one go; one in f32 may be added to.
struct TiledBlock {
  i64 m = 0, n = 0, k = 0;
  std::size_t bytes() const { return std::size_t(m + n) * std::size_t((k + 31) / 32 * 32) * size_of(bf16); }
};
inline TiledBlock tiled_block(i64 m, i64 n, i64 k, DType result) {
  const auto whole = [](i64 size) { return (size + 31) / 32 * 32; };
  TiledBlock b{.k = result == f32 ? std::min<i64>(k, 4096) : k};
  const auto fitting = [&](i64 size, i64 numbers, i64 least, i64 most) {
    return std::min(whole(size), std::clamp(numbers / whole(std::max<i64>(b.k, 1)) / 32 * 32, least, most));
  };
  b.m = fitting(m, 1 << 19, 32, 256);
  b.n = fitting(n, 1 << 21, 64, 1024);
  return b;
}

}  // namespace stretto
