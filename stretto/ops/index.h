// index(x, three, 1): the part of x at one place of a dim, without that dim. A view: nothing is copied.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct IndexAttrs {
  DimId dim;
  i64 at = 0;
  static constexpr void fields(auto& s, auto f) {
    f("dim", s.dim);
    f("at", s.at);
  }
};
Tensor index(Tensor x, const Dim& dim, i64 at);

// The other way round: zero but at one place of a new dim, which stands at `position` of the result.
struct UnindexAttrs {
  DimId dim;
  i64 at = 0, position = 0;
  static constexpr void fields(auto& s, auto f) {
    f("dim", s.dim);
    f("at", s.at);
    f("position", s.position);
  }
};
Tensor unindex(Tensor x, const Dim& dim, i64 at, i64 position = 0);

}  // namespace stretto
