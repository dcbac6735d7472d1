// Gradient of cross_entropy's sum: g * (softmax(logits) - onehot(label)), zero where ignored. Made by differentiation.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct CrossEntropyGradAttrs {
  DimId over;
  i64 ignore = -100;
  static constexpr void fields(auto& s, auto f) {
    f("over", s.over);
    f("ignore", s.ignore);
  }
};
Tensor cross_entropy_grad(Tensor logits, Tensor labels, Tensor g, DimId over, i64 ignore);

}  // namespace stretto
