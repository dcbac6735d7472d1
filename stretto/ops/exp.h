// exp(x), elementwise.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor exp(Tensor x);
}  // namespace stretto
