// permute(x, {seq, batch}): the same dims in another order. A view: nothing is copied.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct PermuteAttrs {
  DimSet dims;
  static constexpr void fields(auto& s, auto f) { f("dims", s.dims); }
};
Tensor permute(Tensor x, const Dims& dims);
Tensor permute_to(Tensor x, DimSet dims);  // x itself when the order is the same

}  // namespace stretto
