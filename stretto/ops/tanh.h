// tanh(x), elementwise.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor tanh(Tensor x);
}  // namespace stretto
