// max(x, vocab): the largest value over dims; padding is not looked at. The gradient is shared evenly by all elements
// that are equal to the maximum.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct MaxAttrs {
  DimSet over;
  static constexpr void fields(auto& s, auto f) { f("over", s.over); }
};
Tensor max(Tensor x, const Dims& over);
Tensor max_over(Tensor x, DimSet over);  // x itself when `over` is empty

}  // namespace stretto
