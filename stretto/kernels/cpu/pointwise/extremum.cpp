#include "stretto/kernels/cpu/pointwise/pointwise.h"

// NaN in either operand gives NaN.
namespace stretto {
Tile minimum_tile(std::span<const DType> in, DType out) {
  return binary_tile<[](auto a, auto b) { return (a < b) || a != a ? a : b; }>(in, out);
}
Tile maximum_tile(std::span<const DType> in, DType out) {
  return binary_tile<[](auto a, auto b) { return (a > b) || a != a ? a : b; }>(in, out);
}
}  // namespace stretto
