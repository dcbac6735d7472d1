// stripe(x, seq, ranks, rows, i): of every block along `seq`, of which there are as many as `ranks` has elements, the
// i-th run of `rows`: {batch seq model} -> {batch ranks rows model}. A view.
// weave({s0, s1}, ranks, rows, seq): the value that has these stripes. They are made inside of it.
//
//   seq = 8, two ranks, two stripes:   0 0 1 1 | 0 0 1 1
//
// Without `ranks` there is one block. Made by compile/inner/chunks.h only, where products are cut so that collectives
// go on beside them.
#pragma once
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

struct StripeAttrs {
  DimId whole;
  DimSet to;  // ranks and rows, or rows
  i64 index = 0;
  static constexpr void fields(auto& s, auto f) {
    f("whole", s.whole);
    f("to", s.to);
    f("index", s.index);
  }
};
struct WeaveAttrs {
  DimSet from;  // ranks and rows, or rows
  DimId whole;
  static constexpr void fields(auto& s, auto f) {
    f("from", s.from);
    f("whole", s.whole);
  }
};
Tensor stripe(Tensor x, DimId whole, DimSet to, i64 index);
Tensor weave(const std::vector<Tensor>& stripes, DimSet from, DimId whole);

}  // namespace stretto
