// Gradient of y = softmax(x): y * (g - sum of g * y). Made by differentiation.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct SoftmaxGradAttrs {
  DimId over;
  static constexpr void fields(auto& s, auto f) { f("over", s.over); }
};
Tensor softmax_grad(Tensor y, Tensor g, DimId over);

}  // namespace stretto
