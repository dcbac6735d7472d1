// Comparisons, broadcast by name: i32 results, 1 where they hold and 0 elsewhere. For where(less(k, q), a, b).
#pragma once
#include "stretto/ir/op.h"

namespace stretto {
Tensor less(Tensor a, Tensor b);
Tensor less_equal(Tensor a, Tensor b);
Tensor greater(Tensor a, Tensor b);
Tensor greater_equal(Tensor a, Tensor b);
Tensor equal(Tensor a, Tensor b);
Tensor not_equal(Tensor a, Tensor b);
Tensor less(Tensor a, double b);
Tensor less_equal(Tensor a, double b);
Tensor greater(Tensor a, double b);
Tensor greater_equal(Tensor a, double b);
Tensor equal(Tensor a, double b);
Tensor not_equal(Tensor a, double b);
}  // namespace stretto
