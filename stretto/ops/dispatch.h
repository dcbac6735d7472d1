// dispatch(x, grouped, out): rows of tokens to where group_rows says; combine(y, grouped, out): back, summed over the
// dims of `which` that are not asked for. Each is the other's gradient.
//
//   const Tensor x = dispatch(h, g, {rows, model});           // h{batch seq model}: one row per choice
//   const Tensor y = combine(v, g, {batch, seq, model});      // v{rows model}
//
// Rows that nobody came for are zero; a token whose row was lost gets NaN.
#pragma once
#include "stretto/ops/group_rows.h"

namespace stretto {

struct DispatchAttrs {
  DimId rows;
  DimSet out;
  static constexpr void fields(auto& s, auto f) {
    f("rows", s.rows);
    f("out", s.out);
  }
};
Tensor dispatch(Tensor x, const GroupedRows&, const Dims& out);

struct CombineAttrs {
  DimId rows;
  DimSet out;
  static constexpr void fields(auto& s, auto f) {
    f("rows", s.rows);
    f("out", s.out);
  }
};
Tensor combine(Tensor y, const GroupedRows&, const Dims& out);

}  // namespace stretto
