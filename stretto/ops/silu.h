// silu(x) = x sigmoid(x), elementwise.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor silu(Tensor x);
Tensor silu_grad(Tensor x, Tensor g);  // g times the derivative at x, in one pass
}  // namespace stretto
