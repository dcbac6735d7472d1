#include "stretto/kernels/cpu/pointwise.h"
#include "stretto/kernels/cpu/vector_math.h"

namespace stretto {

Tile silu_tile(std::span<const DType> in, DType out) {
  return unary_tile<[](auto x) { return x * vm::sigmoid(x); }>(in, out);
}

Tile silu_grad_tile(std::span<const DType> in, DType out) {
  return float_binary_tile<[](auto x, auto g) {
    const auto s = vm::sigmoid(x);
    return g * vm::fma(x, s * (1 - s), s);
  }>(in, out);
}

}  // namespace stretto
