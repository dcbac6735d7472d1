// softmax(x, over): exp(x) / sum of exp(x), over one dim.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct SoftmaxAttrs {
  DimId over;
  static constexpr void fields(auto& s, auto f) { f("over", s.over); }
};
Tensor softmax(Tensor x, Dim over);

}  // namespace stretto
