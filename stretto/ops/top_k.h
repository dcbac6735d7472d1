// top_k(gates, experts, choice): the places of the choice.size largest along a dim, in falling order; of equal ones the
// first comes first. i32, with `choice` as the last dim.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct TopKAttrs {
  DimId over, choice;
  static constexpr void fields(auto& s, auto f) {
    f("over", s.over);
    f("choice", s.choice);
  }
};
Tensor top_k(Tensor x, const Dim& over, const Dim& choice);

}  // namespace stretto
