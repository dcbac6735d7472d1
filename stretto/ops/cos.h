// cos(x), elementwise.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor cos(Tensor x);
}  // namespace stretto
