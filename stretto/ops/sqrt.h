// sqrt(x), elementwise.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor sqrt(Tensor x);
}  // namespace stretto
