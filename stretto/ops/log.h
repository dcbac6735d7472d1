// log(x), elementwise and natural.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor log(Tensor x);
}  // namespace stretto
