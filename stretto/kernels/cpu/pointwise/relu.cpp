#include "stretto/kernels/cpu/pointwise/pointwise.h"

namespace stretto {
Tile relu_tile(std::span<const DType> in, DType out) {
  return unary_tile<[](auto x) { return x < 0 ? decltype(x)(0) : x; }>(in, out);
}
}  // namespace stretto
