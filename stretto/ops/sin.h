// sin(x), elementwise.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor sin(Tensor x);
}  // namespace stretto
