// all_to_all(x, seq, seq_k, heads, heads_q, {"context"}): a dim that was split becomes whole and another one is split
// in its place: of the first every rank gets all blocks, of the second it keeps its own. Made by shard/ only.
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

struct AllToAllAttrs {
  std::vector<std::string> axes;
  DimId gathered, whole;   // the operand's block along `gathered` becomes `whole`
  DimId scattered, block;  // the operand's `scattered` is cut into `block`s
  static constexpr void fields(auto& s, auto f) {
    f("axes", s.axes);
    f("gathered", s.gathered);
    f("whole", s.whole);
    f("scattered", s.scattered);
    f("block", s.block);
  }
};
Tensor all_to_all(Tensor x, DimId gathered, DimId whole, DimId scattered, DimId block, std::vector<std::string> axes);

}  // namespace stretto
