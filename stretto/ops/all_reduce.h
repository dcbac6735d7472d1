// all_reduce(x, {"tensor"}): the sum (or maximum) over the ranks along mesh axes, the same bits on all of them. Made by
// shard/ only.
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

struct AllReduceAttrs {
  std::vector<std::string> axes;  // major to minor
  bool max = false;
  static constexpr void fields(auto& s, auto f) {
    f("axes", s.axes);
    f("max", s.max);
  }
};
Tensor all_reduce(Tensor x, std::vector<std::string> axes, Reduce how = Reduce::sum);  // x itself without axes

}  // namespace stretto
