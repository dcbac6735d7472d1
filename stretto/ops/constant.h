// A number as a tensor without dims; broadcast by name makes it fit everywhere. Made by numbers in
// formulas: `x + 1`.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct ConstantAttrs {
  double value = 0;
  DType dtype = f32;
  static constexpr void fields(auto& s, auto f) {
    f("value", s.value);
    f("dtype", s.dtype);
  }
};
Tensor constant(Builder&, double value, DType);

}  // namespace stretto
