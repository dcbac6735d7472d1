// Sums and maxima over rows in an order that depends on the length only: four running vectors, joined as a tree.
//
//   const float dot = lane_sum<float>(n, [](auto x, auto y) { return x * y; }, x, y);
//
// The function is called with vectors, and with single elements at the end of the row: write it for both.
#pragma once
#include <limits>
#include <utility>

#include "stretto/base/bf16.h"
#include "stretto/kernels/cpu/pack.h"

namespace stretto {

template <class T, int n>
struct VectorOf {
  typedef T type __attribute__((vector_size(n * sizeof(T))));
};

// Vectors of T as vectors of S: for sums in f64 over f32, and over bf16.
template <class S, class T>
inline typename Pack<S>::type load_as(const T* p) {
  if constexpr (sizeof(S) == sizeof(T)) {
    return Pack<S>::load(p);
  } else if constexpr (std::is_same_v<T, BF16>) {
    constexpr int n = int(Pack<S>::lanes);
    using Words = typename VectorOf<std::uint32_t, n>::type;
    typename VectorOf<std::uint16_t, n>::type v;
    std::memcpy(&v, p, sizeof v);
    Words w = __builtin_convertvector(v, Words);
    w <<= 16;
    typename VectorOf<float, n>::type f;
    std::memcpy(&f, &w, sizeof f);
    return __builtin_convertvector(f, typename Pack<S>::type);
  } else {
    typedef T half __attribute__((vector_size(32 * sizeof(T) / sizeof(S))));
    half v;
    std::memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, typename Pack<S>::type);
  }
}

template <class S, class J, class F, class... T>
inline S lanes_joined(i64 n, S start, const J& join, const F& f, const T*... x) {
  using P = Pack<S>;
  constexpr i64 lanes = P::lanes;
  typename P::type sum[4] = {P::all(start), P::all(start), P::all(start), P::all(start)};
  i64 i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes)
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) sum[k] = join(sum[k], f(load_as<S>(x + i + k * lanes)...));
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k)
    if (i + lanes <= n) {
      sum[k] = join(sum[k], f(load_as<S>(x + i)...));
      i += lanes;
    }
  if (i < n) {
    S tail[lanes];
    for (i64 k = 0; k < lanes; ++k) tail[k] = i + k < n ? S(f(S(x[i + k])...)) : start;
    sum[3] = join(sum[3], P::load(tail));
  }
  S last[lanes];
  P::store(last, join(join(sum[0], sum[1]), join(sum[2], sum[3])));
#pragma GCC unroll 4
  for (i64 width = lanes / 2; width > 0; width /= 2)
    for (i64 k = 0; k < width; ++k) last[k] = join(last[k], last[k + width]);
  return last[0];
}

template <class S, class F, class... T>
inline S lane_sum(i64 n, const F& f, const T*... x) {
  return lanes_joined<S>(
      n, S(0), [](auto a, auto b) { return a + b; }, f, x...);
}

template <class T>
inline Wide<T> lane_max(i64 n, const T* x) {
  using S = Wide<T>;
  return lanes_joined<S>(
      n, -std::numeric_limits<S>::infinity(), [](auto a, auto b) { return a > b ? a : b; }, [](auto v) { return v; },
      x);
}

}  // namespace stretto
