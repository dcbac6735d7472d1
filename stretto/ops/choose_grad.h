// choose's gradient of w: per expert the sum over its rows of x times g. Made by differentiation.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct ChooseGradAttrs {
  DimId expert;
  DimSet out;  // w's dims
  static constexpr void fields(auto& s, auto f) {
    f("expert", s.expert);
    f("out", s.out);
  }
};
Tensor choose_grad(Tensor x, Tensor g, Tensor which, DimId expert, const DimSet& out);

}  // namespace stretto
