// a / b, elementwise, broadcast by name.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor operator/(Tensor a, Tensor b);
Tensor operator/(Tensor a, double b);
Tensor operator/(double a, Tensor b);
}  // namespace stretto
