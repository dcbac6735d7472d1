#include "stretto/ops/block.h"

#include <algorithm>

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor block(Tensor x, DimId from, DimId to) {
  return builder_of("block", {x}).emit(block_op, {x}, BlockAttrs{{from}, to, false});
}

Tensor block_flat(Tensor x, DimId to) {
  const DimSet from = x.type().dims;
  return builder_of("block", {x}).emit(block_op, {x}, BlockAttrs{from, to, true});
}

Tensor unblock(Tensor x, DimId from, DimId to) {
  return builder_of("unblock", {x}).emit(unblock_op, {x}, UnblockAttrs{from, to});
}

constinit const Op block_op{
    .name = "block",
    .infer =
        [](const OpCall& c) {
          const BlockAttrs& a = c.attrs<BlockAttrs>();
          Type t = c.in(0);
          if (a.flat) {
            t.dims = {a.to};
          } else {
            STRETTO_ASSERT(a.from.size() == 1 && contains(t.dims, a.from[0]), "cuts a dim of its operand");
            STRETTO_ASSERT(c.graph.size(a.to) <= c.graph.size(a.from[0]), "a block is a part");
            std::replace(t.dims.begin(), t.dims.end(), a.from[0], a.to);
          }
          return std::vector<Type>{t};
        },
    .spread = rules::nothing,
    .cost = rules::streaming<0>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 6}, half{"half", 3}, flat{"flat", 7};
          e.add(block(e.real({a, b}), e.builder.intern(b), e.builder.intern(half)));
          e.add(block(e.real({b, a}), e.builder.intern(b), e.builder.intern(half)));
          e.add(block_flat(e.real({a, b}), e.builder.intern(flat)));
        },
    .no_gradient = true,
};

constinit const Op unblock_op{
    .name = "unblock",
    .infer =
        [](const OpCall& c) {
          const UnblockAttrs& a = c.attrs<UnblockAttrs>();
          Type t = c.in(0);
          STRETTO_ASSERT(contains(t.dims, a.from) && c.graph.size(a.from) <= c.graph.size(a.to), "a block is a part");
          std::replace(t.dims.begin(), t.dims.end(), a.from, a.to);
          return std::vector<Type>{t};
        },
    .spread = rules::nothing,
    .cost = rules::streaming<0>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 6}, half{"half", 3};
          e.add(unblock(e.real({a, half}), e.builder.intern(half), e.builder.intern(b)));
          e.add(unblock(e.real({half, a}), e.builder.intern(half), e.builder.intern(b)));
        },
    .accumulates = true,
    .relocates = true,
    .no_gradient = true,
};

}  // namespace stretto
