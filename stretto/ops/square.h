// square(x) = x * x, elementwise.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor square(Tensor x);
}  // namespace stretto
