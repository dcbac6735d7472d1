// layer_norm(x, gain, bias, model): (x - mean) / sqrt(variance + eps) * gain + bias, over one dim.
#pragma once
#include "stretto/ops/norm.h"

namespace stretto {

// The node's results are y, mean and 1 / sqrt(variance + eps).
Tensor layer_norm(Tensor x, Tensor gain, Tensor bias, Dim over, double eps = 1e-5);

}  // namespace stretto
