// auto [q, k, v] = unstack<3>(z, three): the parts of z along a dim, as views. stack({q, k, v}, three) puts them back.
#pragma once
#include <array>
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

struct StackAttrs {
  DimId dim;
  i64 position = 0;  // of the new dim in the result
  static constexpr void fields(auto& s, auto f) {
    f("dim", s.dim);
    f("position", s.position);
  }
};
Tensor stack(const std::vector<Tensor>& parts, const Dim& dim, i64 position = 0);

struct UnstackAttrs {
  DimId dim;
  static constexpr void fields(auto& s, auto f) { f("dim", s.dim); }
};
std::vector<Tensor> unstack(Tensor x, const Dim& dim);

template <std::size_t N>
std::array<Tensor, N> unstack(Tensor x, const Dim& dim) {
  if (dim.size != i64(N))
    throw Error("unstack", "unstack<{}> of dim {} (of {})", N, dim.str(), x.str()).hint("write unstack<{}>", dim.size);
  const std::vector<Tensor> parts = unstack(x, dim);
  std::array<Tensor, N> a;
  for (std::size_t i = 0; i < N; ++i) a[i] = parts[i];
  return a;
}

}  // namespace stretto
