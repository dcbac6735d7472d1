#include "stretto/ops/all_gather.h"

#include <algorithm>

#include "stretto/ir/collective.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor all_gather(Tensor x, DimId from, DimId to, std::vector<std::string> axes) {
  return builder_of("all_gather", {x}).emit(all_gather_op, {x}, RankBlocksAttrs{std::move(axes), from, {to}, false});
}

Tensor all_gather_rows(Tensor x, DimId rows, DimId ranks, std::vector<std::string> axes) {
  return builder_of("all_gather", {x})
      .emit(all_gather_op, {x}, RankBlocksAttrs{std::move(axes), rows, {ranks, rows}, false});
}

Tensor all_gather_flat(Tensor x, DimSet to, std::vector<std::string> axes) {
  const DimId from = x.type().dims.at(0);
  return builder_of("all_gather", {x})
      .emit(all_gather_op, {x}, RankBlocksAttrs{std::move(axes), from, std::move(to), true});
}

constinit const Op all_gather_op{
    .name = "all_gather",
    .infer =
        [](const OpCall& c) {
          const RankBlocksAttrs& a = c.attrs<RankBlocksAttrs>();
          Type t = c.in(0);
          STRETTO_ASSERT(contains(t.dims, a.part), "gathers a dim of its operand");
          if (a.flat) {
            t.dims = a.whole;
          } else if (a.ranks_apart()) {
            t.dims.insert(t.dims.begin() + position(t.dims, a.part), a.whole[0]);
          } else {
            STRETTO_ASSERT(a.whole.size() == 1 && c.graph.size(a.whole[0]) % c.graph.size(a.part) == 0);
            std::replace(t.dims.begin(), t.dims.end(), a.part, a.whole[0]);
          }
          return std::vector<Type>{t};
        },
    .spread = rules::nothing,
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          const DimId part = e.builder.intern(Dim{"part", 3}), whole = e.builder.intern(Dim{"whole", 6});
          e.add(all_gather(e.real({{"a", 2}, {"part", 3}}), part, whole, {"tensor"}));
          const DimId ranks = e.builder.intern(Dim{"ranks", 2});
          e.add(all_gather_rows(e.real({{"a", 2}, {"part", 3}}), part, ranks, {"tensor"}));
          const DimSet matrix = e.builder.intern(Dims{{"b", 4}, {"c", 5}});
          e.add(all_gather_flat(e.real({{"flat", 7}}), matrix, {"data"}));
        },
    .costly = Costly::no,  // what was gathered is larger than what it was gathered from
    .collective_kind = CollectiveKind::gather,
    .collective =
        [](const OpCall& c, const View& in, const View& out) {
          const RankBlocksAttrs& a = c.attrs<RankBlocksAttrs>();
          CollectiveShape s{.axes = a.axes};
          s.out_step = for_block_dims(
              a, in, out, [&](i64 size, i64 in_part, i64 in_whole) { add_box_dim(s, size, in_part, in_whole); });
          if (a.flat) s.valid = out.elements();
          return s;
        },
    .no_gradient = true,
};

}  // namespace stretto
