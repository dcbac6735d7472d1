// A part of a collective's box as runs along its innermost dim, and copies of such runs.
//
//   for_box_runs(shape, first, last, [&](i64 in, i64 out, i64 count) {
//     copy_run(4, to + 4 * out, out_stride, from + 4 * in, in_stride, count);
//   });
#pragma once
#include <algorithm>
#include <array>
#include <cstring>

#include "stretto/base/error.h"
#include "stretto/ir/collective.h"

namespace stretto {

constexpr std::size_t max_box_dims = 16;

inline i64 inner_in_stride(const CollectiveShape& s) { return s.sizes.empty() ? 1 : s.in_strides.back(); }
inline i64 inner_out_stride(const CollectiveShape& s) { return s.sizes.empty() ? 1 : s.out_strides.back(); }

// Elements first, ..., last - 1 of a box in their order: f(offset in the operand, in the result, elements).
template <class F>
void for_box_runs(const CollectiveShape& s, i64 first, i64 last, F f) {
  const std::size_t dims = s.sizes.size();
  if (dims <= 1) {
    if (first < last) f(first * inner_in_stride(s), first * inner_out_stride(s), last - first);
    return;
  }
  std::array<i64, max_box_dims> index{};
  i64 in = 0, out = 0, rest = first;
  for (std::size_t d = dims; d-- > 0;) {
    index[d] = rest % s.sizes[d];
    rest /= s.sizes[d];
    in += index[d] * s.in_strides[d];
    out += index[d] * s.out_strides[d];
  }
  while (first < last) {
    std::size_t d = dims - 1;
    const i64 count = std::min(s.sizes[d] - index[d], last - first);
    f(in, out, count);
    first += count;
    in += count * s.in_strides[d];
    out += count * s.out_strides[d];
    index[d] += count;
    for (; d > 0 && index[d] == s.sizes[d]; --d) {
      in += s.in_strides[d - 1] - index[d] * s.in_strides[d];
      out += s.out_strides[d - 1] - index[d] * s.out_strides[d];
      index[d] = 0;
      ++index[d - 1];
    }
  }
}

template <i64 element>
void copy_elements(std::byte* to, i64 to_stride, const std::byte* from, i64 from_stride, i64 count) {
  for (i64 i = 0; i < count; ++i) std::memcpy(to + i * to_stride * element, from + i * from_stride * element, element);
}

// Strides in elements of so many bytes.
inline void copy_run(std::size_t element, std::byte* to, i64 to_stride, const std::byte* from, i64 from_stride,
                     i64 count) {
  if (to == from && to_stride == from_stride) return;
  if (to_stride == 1 && from_stride == 1)
    std::memcpy(to, from, count * element);
  else if (element == 8)
    copy_elements<8>(to, to_stride, from, from_stride, count);
  else if (element == 4)
    copy_elements<4>(to, to_stride, from, from_stride, count);
  else
    copy_elements<2>(to, to_stride, from, from_stride, count);
}

}  // namespace stretto
