// For ops only: what layer_norm and rms_norm, and their gradients, have in common.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct NormAttrs {
  DimId over;
  double eps = 0;
  static constexpr void fields(auto& s, auto f) {
    f("over", s.over);
    f("eps", s.eps);
  }
};
struct NormGradAttrs {
  DimId over;
  static constexpr void fields(auto& s, auto f) { f("over", s.over); }
};

}  // namespace stretto
