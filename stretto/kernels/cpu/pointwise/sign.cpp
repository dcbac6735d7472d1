#include "stretto/kernels/cpu/pointwise/pointwise.h"

namespace stretto {
Tile sign_tile(std::span<const DType> in, DType out) {
  return unary_tile<[](auto x) { return decltype(x)((x > 0) - (x < 0)); }>(in, out);
}
}  // namespace stretto
