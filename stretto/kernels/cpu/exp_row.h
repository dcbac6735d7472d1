// exp_row(x, y, n, top): y[i] = exp(x[i] - top) for top at least every x, and the sum of all y. y may be x itself, or
// null when only the sum is wanted. Of bf16 only the sum is to be had; scaled_exp_row is its second pass.
#pragma once
#include "stretto/kernels/cpu/lanes.h"
#include "stretto/kernels/cpu/vector_math.h"

namespace stretto {

// exp(x) for x <= 0, and zero where that would be subnormal. -inf gives zero, NaN stays NaN.
template <class T>
STRETTO_INLINE T decay(T x) {
  constexpr T least = sizeof(T) == 4 ? T(-87.3) : T(-708.3);
  const auto [n, em1] = vm::reduce_exp(x < least ? least : x);
  const T power = vm::power_of_two(n);
  const T y = vm::fma(em1, power, power);
  return x < least ? T(0) : y;
}

// Are elements of the type computed in the type itself?
template <class T>
inline constexpr bool stored_wide = std::is_same_v<T, Wide<T>>;

template <class T>
inline Wide<T> exp_row(const T* x, Wide<T>* y, i64 n, Wide<T> top) {
  using W = Wide<T>;
  constexpr i64 tile = 512;  // stays in the first-level cache between the two loops
  alignas(64) W unused[tile];
  W total = 0;
  for (i64 begin = 0; begin < n; begin += tile) {
    const i64 m = n - begin < tile ? n - begin : tile;
    const T* from = x + begin;
    W* to = y ? y + begin : unused;
#pragma GCC ivdep
    for (i64 i = 0; i < m; ++i) to[i] = decay(from[i] - top);
    total += lane_sum<W>(
        m, [](auto v) { return v; }, to);
  }
  return total;
}

// y[i] = factor * exp(x[i] - top); y may be x itself.
template <class T>
inline void scaled_exp_row(const T* x, T* y, i64 n, Wide<T> top, Wide<T> factor) {
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = T(factor * decay(x[i] - top));
}

}  // namespace stretto
