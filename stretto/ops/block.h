// block(x, position, seq_r): this rank's part of a dim that was whole. Which part it is follows from where the views
// start. Made by shard/ only.
//
// block_flat(x, flat): likewise of all elements in order, padded with zeros.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct BlockAttrs {
  DimSet from;  // this dim is cut, or all of the operand's
  DimId to;
  bool flat = false;
  static constexpr void fields(auto& s, auto f) {
    f("from", s.from);
    f("to", s.to);
    f("flat", s.flat);
  }
};
Tensor block(Tensor x, DimId from, DimId to);
Tensor block_flat(Tensor x, DimId to);

// The other way round: this rank's part at its place, zeros elsewhere. A sum over the ranks makes it whole.
struct UnblockAttrs {
  DimId from, to;
  static constexpr void fields(auto& s, auto f) {
    f("from", s.from);
    f("to", s.to);
  }
};
Tensor unblock(Tensor x, DimId from, DimId to);

}  // namespace stretto
