#include "stretto/kernels/cpu/pointwise/pointwise.h"

namespace stretto {
namespace {
template <auto f>
Tile comparison(std::span<const DType> in, DType out) {
  if (in[0] != in[1] || out != i32) return nullptr;
  return in[0] == f32   ? &binary_loop<f, float, std::int32_t>
         : in[0] == f64 ? &binary_loop<f, double, std::int32_t>
         : in[0] == i32 ? &binary_loop<f, std::int32_t, std::int32_t>
                        : nullptr;
}
}  // namespace

Tile less_tile(std::span<const DType> in, DType out) {
  return comparison<[](auto a, auto b) { return (a < b); }>(in, out);
}
Tile less_equal_tile(std::span<const DType> in, DType out) {
  return comparison<[](auto a, auto b) { return (a <= b); }>(in, out);
}
Tile greater_tile(std::span<const DType> in, DType out) {
  return comparison<[](auto a, auto b) { return (a > b); }>(in, out);
}
Tile greater_equal_tile(std::span<const DType> in, DType out) {
  return comparison<[](auto a, auto b) { return (a >= b); }>(in, out);
}
Tile equal_tile(std::span<const DType> in, DType out) {
  return comparison<[](auto a, auto b) { return (a == b); }>(in, out);
}
Tile not_equal_tile(std::span<const DType> in, DType out) {
  return comparison<[](auto a, auto b) { return (a != b); }>(in, out);
}

}  // namespace stretto
