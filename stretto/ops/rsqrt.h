// rsqrt(x) = 1 / sqrt(x), elementwise.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor rsqrt(Tensor x);
}  // namespace stretto
