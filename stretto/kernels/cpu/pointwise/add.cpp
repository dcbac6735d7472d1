#include "stretto/kernels/cpu/pointwise/pointwise.h"

namespace stretto {
Tile add_tile(std::span<const DType> in, DType out) {
  return binary_tile<[](auto a, auto b) { return a + b; }>(in, out);
}
}  // namespace stretto
