// squared_norm(x): the sum of squares as an f64 scalar; padding is not counted. For a weight in a loss, and for
// global gradient norms.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor squared_norm(Tensor x);
}  // namespace stretto
