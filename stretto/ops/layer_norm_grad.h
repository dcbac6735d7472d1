// Gradient of layer_norm in one pass: results dx, dgain, dbias. Made by differentiation.
#pragma once
#include "stretto/ops/norm.h"

namespace stretto {

Tensor layer_norm_grad(Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor g, DimId over);

}  // namespace stretto
