// iota(builder, seq): 0, 1, 2, ... along a dim, as i32. The logical index: a shard counts on from its offset.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct IotaAttrs {
  DimId dim;
  static constexpr void fields(auto& s, auto f) { f("dim", s.dim); }
};
Tensor iota(Builder&, const Dim& dim);

}  // namespace stretto
