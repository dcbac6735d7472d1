// where(condition, a, b): a where the (i32) condition is not 0, else b. Broadcast by name.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor where(Tensor condition, Tensor a, Tensor b);
Tensor where(Tensor condition, Tensor a, double b);
Tensor where(Tensor condition, double a, Tensor b);
}  // namespace stretto
