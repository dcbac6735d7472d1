// cast(x, f64): the same values in another type. Floats become integers by dropping the fraction.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct CastAttrs {
  DType to = f32;
  static constexpr void fields(auto& s, auto f) { f("to", s.to); }
};
Tensor cast(Tensor x, DType to);  // x itself when it has that type

}  // namespace stretto
