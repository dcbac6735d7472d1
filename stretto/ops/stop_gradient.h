// stop_gradient(x): x, but nothing is learned through it.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor stop_gradient(Tensor x);
}  // namespace stretto
