#include "stretto/ops/reduce_scatter.h"

#include <algorithm>

#include "stretto/ir/collective.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor reduce_scatter(Tensor x, DimId from, DimId to, std::vector<std::string> axes) {
  return builder_of("reduce_scatter", {x})
      .emit(reduce_scatter_op, {x}, RankBlocksAttrs{std::move(axes), to, {from}, false});
}

Tensor reduce_scatter_rows(Tensor x, DimId ranks, DimId rows, std::vector<std::string> axes) {
  return builder_of("reduce_scatter", {x})
      .emit(reduce_scatter_op, {x}, RankBlocksAttrs{std::move(axes), rows, {ranks, rows}, false});
}

Tensor reduce_scatter_flat(Tensor x, DimId to, std::vector<std::string> axes) {
  return builder_of("reduce_scatter", {x})
      .emit(reduce_scatter_op, {x}, RankBlocksAttrs{std::move(axes), to, x.type().dims, true});
}

constinit const Op reduce_scatter_op{
    .name = "reduce_scatter",
    .infer =
        [](const OpCall& c) {
          const RankBlocksAttrs& a = c.attrs<RankBlocksAttrs>();
          Type t = c.in(0);
          if (a.flat) {
            t.dims = {a.part};
          } else if (a.ranks_apart()) {
            STRETTO_ASSERT(contains(t.dims, a.whole[0]) && contains(t.dims, a.part),
                           "blocks along a dim of its operand");
            t.dims = without(t.dims, {a.whole[0]});
          } else {
            STRETTO_ASSERT(a.whole.size() == 1 && contains(t.dims, a.whole[0]), "cuts a dim of its operand");
            std::replace(t.dims.begin(), t.dims.end(), a.whole[0], a.part);
          }
          return std::vector<Type>{t};
        },
    .spread = rules::nothing,
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          const DimId part = e.builder.intern(Dim{"part", 3}), whole = e.builder.intern(Dim{"whole", 6});
          e.add(reduce_scatter(e.real({{"a", 2}, {"whole", 6}}), whole, part, {"tensor"}));
          const DimId ranks = e.builder.intern(Dim{"ranks", 2});
          e.add(reduce_scatter_rows(e.real({{"a", 2}, {"ranks", 2}, {"part", 3}}), ranks, part, {"tensor"}));
          e.add(reduce_scatter_flat(e.real({{"b", 4}, {"c", 5}}), e.builder.intern(Dim{"flat", 7}), {"data"}));
        },
    .costly = Costly::yes,
    .collective_kind = CollectiveKind::scatter,
    .collective =
        [](const OpCall& c, const View& in, const View& out) {
          const RankBlocksAttrs& a = c.attrs<RankBlocksAttrs>();
          CollectiveShape s{.axes = a.axes};
          s.in_step = for_block_dims(
              a, out, in, [&](i64 size, i64 in_part, i64 in_whole) { add_box_dim(s, size, in_whole, in_part); });
          if (a.flat) s.valid = in.elements();
          return s;
        },
    .no_gradient = true,
};

}  // namespace stretto
