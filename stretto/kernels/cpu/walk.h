// Index spaces with one element offset per operand: the loops around kernels.
//
//   const Space rows = space_of(without(x.dims, {over}), {&x, &y});
//   walk<2>(rows, [&](const std::array<i64, 2>& at) { row(x_data + at[0], y_data + at[1]); });
#pragma once
#include <array>
#include <initializer_list>
#include <vector>

#include "stretto/kernels/kernel.h"

namespace stretto {

struct Space {
  std::vector<i64> sizes;                 // outermost first; no dim of size 1
  std::vector<std::vector<i64>> strides;  // [operand][dim]
  i64 count() const {
    i64 n = 1;
    for (i64 s : sizes) n *= s;
    return n;
  }
};

// The space of `dims`, in this order, as these views step through it. Neighbours that all step through evenly are one.
inline Space space_of(const DimSet& dims, std::initializer_list<const View*> views) {
  Space s;
  s.strides.resize(views.size());
  for (DimId d : dims) {
    i64 size = 1;
    for (const View* v : views) size = std::max(size, v->size(d));
    if (size == 1) continue;
    bool merge = !s.sizes.empty();
    std::size_t i = 0;
    for (const View* v : views) merge = merge && s.strides[i++].back() == v->stride(d) * size;
    if (merge)
      s.sizes.back() *= size;
    else
      s.sizes.push_back(size);
    i = 0;
    for (const View* v : views) {
      if (!merge) s.strides[i].push_back(0);
      s.strides[i++].back() = v->stride(d);
    }
  }
  return s;
}

// Calls f(offsets) for every index, the last dim fastest. offsets[i] is in elements of operand i.
template <std::size_t N, class F>
void walk(const Space& s, F&& f) {
  constexpr std::size_t max_rank = 16;
  STRETTO_ASSERT(s.sizes.size() <= max_rank && s.strides.size() >= N);
  std::array<i64, max_rank> index{};
  std::array<i64, N> at{};
  const std::size_t rank = s.sizes.size();
  for (i64 left = s.count(); left > 0; --left) {
    f(at);
    for (std::size_t d = rank; d-- > 0;) {
      const bool wrap = ++index[d] == s.sizes[d];
      for (std::size_t i = 0; i < N; ++i) at[i] += wrap ? -s.strides[i][d] * (s.sizes[d] - 1) : s.strides[i][d];
      if (!wrap) break;
      index[d] = 0;
    }
  }
}

// f.template operator()<float>() or <double>().
template <class F>
auto with_float(DType t, F&& f) {
  STRETTO_ASSERT(t == f32 || t == f64, "kernels compute in f32 and f64");
  return t == f32 ? f.template operator()<float>() : f.template operator()<double>();
}

}  // namespace stretto
