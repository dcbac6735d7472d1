// Gradient of layer_norm in one pass: results dx, dgain, dbias. Made by differentiation.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct LayerNormGradAttrs {
  DimId over;
  static constexpr void fields(auto& s, auto f) { f("over", s.over); }
};
Tensor layer_norm_grad(Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor g, DimId over);

}  // namespace stretto
