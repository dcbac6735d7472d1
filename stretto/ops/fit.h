// fit(gradient, operand's type): sums over dims the type lacks, broadcasts along dims it has, orders them.
// For ops only, and autodiff.
#pragma once
#include "stretto/ir/tensor.h"

namespace stretto {

Tensor fit(Tensor g, const Type& like);  // g itself when it fits already

}  // namespace stretto
