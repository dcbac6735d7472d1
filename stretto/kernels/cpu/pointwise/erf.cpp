#include "stretto/kernels/cpu/pointwise/pointwise.h"
#include "stretto/kernels/cpu/vector_math.h"

namespace stretto {
Tile erf_tile(std::span<const DType> in, DType out) {
  return unary_tile<[](auto x) { return vm::erf(x); }>(in, out);
}
}  // namespace stretto
