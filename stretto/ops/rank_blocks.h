// For ops only: what all_gather and reduce_scatter have in common, which undo each other's shapes. Every rank has one
// block of a whole.
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/op.h"
#include "stretto/ir/view.h"

namespace stretto {

struct RankBlocksAttrs {
  std::vector<std::string> axes;  // major to minor
  DimId part;                     // a block along it ...
  DimSet whole;                   // ... is of this dim, or at a place of the first of these two (ranks, part), or flat:
  bool flat = false;              // of all elements of these dims in order, padded at the end
  bool ranks_apart() const { return !flat && whole.size() == 2; }
  static constexpr void fields(auto& s, auto f) {
    f("axes", s.axes);
    f("part", s.part);
    f("whole", s.whole);
    f("flat", s.flat);
  }
};

// Calls f(size, stride in the part, stride in the whole) for every dim of a block. Returns how far the next rank's
// block is away in the whole.
template <class F>
i64 for_block_dims(const RankBlocksAttrs& a, const View& part, const View& whole, F f) {
  if (a.flat) {
    STRETTO_ASSERT(whole.contiguous(), "elements in order");
    f(part.size(a.part), part.stride(a.part), i64{1});
    return part.size(a.part);
  }
  for (DimId d : part.dims)
    f(part.size(d), part.stride(d), whole.stride(d == a.part && !a.ranks_apart() ? a.whole[0] : d));
  return (a.ranks_apart() ? 1 : part.size(a.part)) * whole.stride(a.whole[0]);
}

}  // namespace stretto
