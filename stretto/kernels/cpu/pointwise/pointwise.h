// The one kernel behind every pointwise op and every fused group of them: evaluates tiles that stay in the first-level
// cache, with broadcast by name. See ops/fused.h for how a group is described.
#pragma once
#include "stretto/kernels/kernel.h"

namespace stretto {

std::span<const Kernel> pointwise_kernels();
inline constexpr i64 tile_length = 512;

// Helpers for the tile functions in kernels/cpu/pointwise/<op>.cpp:
//   Tile neg_tile(std::span<const DType> in, DType out) { return unary_tile<[](auto x) { return -x; }>(in, out); }
// The lambda is inlined into a loop over n that the compiler vectorises.
template <auto f, class T>
void unary_loop(void* out, const void* const* in, i64 n) {
  T* o = static_cast<T*>(__builtin_assume_aligned(out, 64));
  const T* a = static_cast<const T*>(__builtin_assume_aligned(in[0], 64));
#pragma GCC ivdep  // out may be in[k] itself, never shifted against it
  for (i64 i = 0; i < n; ++i) o[i] = f(a[i]);
}
template <auto f, class T, class R = T>
void binary_loop(void* out, const void* const* in, i64 n) {
  R* o = static_cast<R*>(__builtin_assume_aligned(out, 64));
  const T* a = static_cast<const T*>(__builtin_assume_aligned(in[0], 64));
  const T* b = static_cast<const T*>(__builtin_assume_aligned(in[1], 64));
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) o[i] = R(f(a[i], b[i]));
}
template <auto f>
Tile unary_tile(std::span<const DType> in, DType out) {
  if (in[0] != out) return nullptr;
  return out == f32 ? &unary_loop<f, float> : out == f64 ? &unary_loop<f, double> : nullptr;
}
template <auto f>
Tile binary_tile(std::span<const DType> in, DType out) {
  if (in[0] != in[1] || in[0] != out) return nullptr;
  return out == f32   ? &binary_loop<f, float>
         : out == f64 ? &binary_loop<f, double>
         : out == i32 ? &binary_loop<f, int>
                      : nullptr;
}

template <auto f>
Tile float_binary_tile(std::span<const DType> in, DType out) {
  if (in[0] != in[1] || in[0] != out) return nullptr;
  return out == f32 ? &binary_loop<f, float> : out == f64 ? &binary_loop<f, double> : nullptr;
}

}  // namespace stretto
