// concat({past, now}, {seq_past, seq_now}, seq): one after the other along a dim, which gets a new name and size.
#pragma once
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

struct ConcatAttrs {
  DimSet along;  // one per operand
  DimId to;
  static constexpr void fields(auto& s, auto f) {
    f("along", s.along);
    f("to", s.to);
  }
};
Tensor concat(const std::vector<Tensor>& parts, const Dims& along, const Dim& to);  // one dim: the same for all parts

}  // namespace stretto
