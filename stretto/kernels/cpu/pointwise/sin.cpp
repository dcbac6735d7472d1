#include <cmath>

#include "stretto/kernels/cpu/pointwise/pointwise.h"

namespace stretto {
// In f64, also of an f32: then the result is the nearest f32 to nearly every sine, on every processor.
Tile sin_tile(std::span<const DType> in, DType out) {
  return unary_tile<[](auto x) { return decltype(x)(std::sin(double(x))); }>(in, out);
}
}  // namespace stretto
