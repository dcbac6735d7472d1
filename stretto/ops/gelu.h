// gelu(x): x Φ(x) in its tanh form; gelu_erf(x): the exact one.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor gelu(Tensor x);
Tensor gelu_erf(Tensor x);
Tensor gelu_grad(Tensor x, Tensor g);  // g times the derivative at x, in one pass
Tensor gelu_erf_grad(Tensor x, Tensor g);
}  // namespace stretto
