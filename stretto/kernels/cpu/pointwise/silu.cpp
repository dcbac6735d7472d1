#include "stretto/kernels/cpu/pointwise/pointwise.h"
#include "stretto/kernels/cpu/vector_math.h"

namespace stretto {

Tile silu_tile(std::span<const DType> in, DType out) {
  return unary_tile<[](auto x) {
    const auto c = x < -700 ? decltype(x)(-700) : x;  // σ is 0 there
    return c * vm::bounded_sigmoid(c);
  }>(in, out);
}

Tile silu_grad_tile(std::span<const DType> in, DType out) {
  return float_binary_tile<[](auto x, auto g) {
    const auto c = vm::clamp(x, decltype(x)(-700), decltype(x)(700)), s = vm::bounded_sigmoid(c);
    return g * vm::fma(c, s * (1 - s), s);
  }>(in, out);
}

}  // namespace stretto
