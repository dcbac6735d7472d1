// exp_row(x, y, n, top): y[i] = exp(x[i] - top), and the sum of all y. y may be x itself, or null when only the sum is
// wanted.
#pragma once
#include "stretto/kernels/cpu/lanes.h"
#include "stretto/kernels/cpu/vector_math.h"

namespace stretto {

template <class T>
inline T exp_row(const T* x, T* y, i64 n, T top) {
  constexpr i64 tile = 512;  // stays in the first-level cache between the two loops
  alignas(64) T unused[tile];
  T total = 0;
  for (i64 begin = 0; begin < n; begin += tile) {
    const i64 m = std::min(tile, n - begin);
    const T* from = x + begin;
    T* to = y ? y + begin : unused;
#pragma GCC ivdep
    for (i64 i = 0; i < m; ++i) to[i] = vm::exp(from[i] - top);
    total += lane_sum<T>(m, [&](i64 i) { return to[i]; });
  }
  return total;
}

}  // namespace stretto
