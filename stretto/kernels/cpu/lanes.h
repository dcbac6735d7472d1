// Sums and maxima over f(0) ... f(n-1) in an order that depends on n only: independent running values that the
// compiler keeps in vector registers, joined as a tree.
//
//   const float squares = lane_sum<float>(n, [&](i64 i) { return x[i] * x[i]; });
#pragma once
#include <algorithm>
#include <limits>

#include "stretto/base/id.h"

namespace stretto {

template <class S>
inline constexpr int lane_count = int(128 / sizeof(S));

template <class S, int count, class J, class F>
inline S lanes_joined(i64 n, S start, const J& join, const F& f) {
  S lanes[count];
  for (int k = 0; k < count; ++k) lanes[k] = start;
  i64 i = 0;
  for (; i + count <= n; i += count)
    for (int k = 0; k < count; ++k) lanes[k] = join(lanes[k], f(i + k));
  for (int k = 0; i + k < n; ++k) lanes[k] = join(lanes[k], f(i + k));
  for (int width = count / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k) lanes[k] = join(lanes[k], lanes[k + width]);
  return lanes[0];
}

template <class S, int count = lane_count<S>, class F>
inline S lane_sum(i64 n, const F& f) {
  return lanes_joined<S, count>(
      n, S(0), [](S a, S b) { return a + b; }, f);
}

template <class S, int count = lane_count<S>, class F>
inline S lane_max(i64 n, const F& f) {
  return lanes_joined<S, count>(
      n, -std::numeric_limits<S>::infinity(), [](S a, S b) { return a > b ? a : b; }, f);
}

}  // namespace stretto
