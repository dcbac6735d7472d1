// slice(x, seq, half, 4): elements 4, 5, ... of a dim, under a new and smaller dim. A view: nothing is copied.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct SliceAttrs {
  DimId from, to;  // of the operand, of the result
  i64 start = 0;   // along the larger of the two
  static constexpr void fields(auto& s, auto f) {
    f("from", s.from);
    f("to", s.to);
    f("start", s.start);
  }
};
Tensor slice(Tensor x, const Dim& from, const Dim& to, i64 start = 0);

// The other way round: x at `start` of a larger dim, zeros before and after.
Tensor pad(Tensor x, const Dim& from, const Dim& to, i64 start = 0);

}  // namespace stretto
