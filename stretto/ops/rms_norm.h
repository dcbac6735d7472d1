// rms_norm(x, gain, model): x / sqrt(mean of x^2 + eps) * gain, over one dim.
#pragma once
#include "stretto/ops/norm.h"

namespace stretto {

// The node's results are y and 1 / sqrt(mean of x^2 + eps).
Tensor rms_norm(Tensor x, Tensor gain, Dim over, double eps = 1e-6);

}  // namespace stretto
