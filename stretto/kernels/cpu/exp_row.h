// exp_row(x, y, n, top): y[i] = exp(x[i] - top) for top at least every x, and the sum of all y. y may be x itself, or
// null when only the sum is wanted.
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

template <class T>
inline T exp_row(const T* x, T* y, i64 n, T top) {
  constexpr i64 tile = 512;  // stays in the first-level cache between the two loops
  alignas(64) T unused[tile];
  T total = 0;
  for (i64 begin = 0; begin < n; begin += tile) {
    const i64 m = n - begin < tile ? n - begin : tile;
    const T* from = x + begin;
    T* to = y ? y + begin : unused;
#pragma GCC ivdep
    for (i64 i = 0; i < m; ++i) to[i] = decay(from[i] - top);
    total += lane_sum<T>(
        m, [](auto v) { return v; }, to);
  }
  return total;
}

}  // namespace stretto
