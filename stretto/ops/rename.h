// rename(x, seq, seq_k): the same values under another name. A view, unless the layout splits the two differently.
#pragma once
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

struct RenameAttrs {
  DimSet from, to;
  static constexpr void fields(auto& s, auto f) {
    f("from", s.from);
    f("to", s.to);
  }
};
struct Rename {
  Dim from, to;
};
Tensor rename(Tensor x, const Dim& from, const Dim& to);
Tensor rename(Tensor x, const std::vector<Rename>& pairs);  // all at once: {{a, b}, {b, a}} swaps

}  // namespace stretto
