#include <cmath>

#include "stretto/kernels/cpu/pointwise/pointwise.h"

namespace stretto {
Tile rsqrt_tile(std::span<const DType> in, DType out) {
  return unary_tile<[](auto x) { return 1 / std::sqrt(x); }>(in, out);
}
}  // namespace stretto
