// -x, elementwise.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor operator-(Tensor x);
}  // namespace stretto
