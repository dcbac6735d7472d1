// relu(x): x where it is positive, else 0. The gradient at 0 is 0.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor relu(Tensor x);
}  // namespace stretto
