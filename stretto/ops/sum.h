// sum(x, {batch, seq}): adds up over dims; padding is not counted.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct SumAttrs {
  DimSet over;
  std::vector<DType> result = {};  // f32, of a bf16 operand: it is not rounded; none: its type
  static constexpr void fields(auto& s, auto f) {
    f("over", s.over);
    f("result", s.result);
  }
};
Tensor sum(Tensor x, const Dims& over);
Tensor sum_over(Tensor x, DimSet over);  // x itself when there is nothing to sum
Tensor sum_all(Tensor x);                // to a scalar

}  // namespace stretto
