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

// A gradient is linear in the operand that is the gradient of the result, and has sums over all rows.
template <int gradient>
Spread norm_grad_spread(const OpCall& c) {
  Spread s{.serial = {c.attrs<NormGradAttrs>().over}, .linear = {gradient}};
  for (DimId d : without(c.in(0).dims, s.serial)) s.reduce.push_back({d, Reduce::sum});
  return s;
}

}  // namespace stretto
