// sign(x): -1, 0 or 1. Its gradient is zero.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor sign(Tensor x);
}  // namespace stretto
