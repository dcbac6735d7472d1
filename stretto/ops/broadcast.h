// broadcast(bias, {batch, ff}): the same values along more dims, in the given order. A view: nothing is copied.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct BroadcastAttrs {
  DimSet dims;
  static constexpr void fields(auto& s, auto f) { f("dims", s.dims); }
};
Tensor broadcast(Tensor x, const Dims& dims);
Tensor broadcast_to(Tensor x, DimSet dims);

}  // namespace stretto
