// erf(x), elementwise: 2/sqrt(π) times the integral of exp(-t²) from 0 to x.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor erf(Tensor x);
}  // namespace stretto
