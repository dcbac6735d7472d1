// triple(taken, weights, y, {batch, seq, model}): the product of three, summed over all dims that are not asked for.
//
// For products in which most of the first operand is zero: kernels pass over its zeros, and nothing of the size of all
// dims together is ever made.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct TripleAttrs {
  DimSet out;
  static constexpr void fields(auto& s, auto f) { f("out", s.out); }
};
// `out`: dims of the operands, in the result's order.
Tensor triple(Tensor a, Tensor b, Tensor c, const Dims& out);

}  // namespace stretto
