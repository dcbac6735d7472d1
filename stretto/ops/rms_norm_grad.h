// Gradient of rms_norm in one pass: results dx, dgain. Made by differentiation.
#pragma once
#include "stretto/ops/norm.h"

namespace stretto {

Tensor rms_norm_grad(Tensor x, Tensor gain, Tensor rstd, Tensor g, DimId over);

}  // namespace stretto
