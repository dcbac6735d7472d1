#include "stretto/kernels/cpu/pointwise/pointwise.h"

namespace stretto {
Tile neg_tile(std::span<const DType> in, DType out) {
  return unary_tile<[](auto x) { return -x; }>(in, out);
}
}  // namespace stretto
