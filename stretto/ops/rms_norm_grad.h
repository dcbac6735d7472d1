// Gradient of rms_norm in one pass: results dx, dgain. Made by differentiation.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct RmsNormGradAttrs {
  DimId over;
  static constexpr void fields(auto& s, auto f) { f("over", s.over); }
};
Tensor rms_norm_grad(Tensor x, Tensor gain, Tensor rstd, Tensor g, DimId over);

}  // namespace stretto
