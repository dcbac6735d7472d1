// pick(x, which, over, out): x at the places that `which`, i32, names along `over`; unpick puts values there.
//
//   pick(gates, which, experts, {batch, seq, choice})          gates{batch seq experts} which{batch seq choice}
//   unpick(h, place, {experts, slot}, {batch, experts, slot, model})   place: expert * slots + slot; h{batch seq model}
//
// Along several dims a place counts row by row; one outside of them (-1, or another rank's) adds nothing. Dims that are
// not asked for are summed. Each is the other's gradient.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct PickAttrs {
  DimSet over, out;
  static constexpr void fields(auto& s, auto f) {
    f("over", s.over);
    f("out", s.out);
  }
};
Tensor pick(Tensor x, Tensor which, const Dims& over, const Dims& out);

struct UnpickAttrs {
  DimSet over, out;
  static constexpr void fields(auto& s, auto f) {
    f("over", s.over);
    f("out", s.out);
  }
};
Tensor unpick(Tensor x, Tensor which, const Dims& over, const Dims& out);

}  // namespace stretto
