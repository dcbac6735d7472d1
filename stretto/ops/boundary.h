// x = boundary(x): the pipeline may be cut here.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor boundary(Tensor x);
}  // namespace stretto
