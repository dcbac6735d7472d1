// minimum(a, b), maximum(a, b), elementwise, broadcast by name. Where the two are equal the gradient goes to the first.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor minimum(Tensor a, Tensor b);
Tensor minimum(Tensor a, double b);
Tensor maximum(Tensor a, Tensor b);
Tensor maximum(Tensor a, double b);
}  // namespace stretto
