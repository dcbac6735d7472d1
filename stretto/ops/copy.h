// The same values in memory of their own. Made by the compiler where a result would otherwise be a view or an argument.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor copy(Tensor x);
}  // namespace stretto
