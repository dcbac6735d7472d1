// mean(x, {batch, seq}): the average over dims; padding is not counted.
#pragma once
#include "stretto/ir/tensor.h"

namespace stretto {
Tensor mean(Tensor x, const Dims& over);
}  // namespace stretto
