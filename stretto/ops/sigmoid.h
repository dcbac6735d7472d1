// sigmoid(x) = 1 / (1 + exp(-x)), elementwise.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor sigmoid(Tensor x);
}  // namespace stretto
