#include "stretto/ops/reduce_scatter.h"

#include <algorithm>

#include "stretto/ir/collective.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/rules.h"

namespace stretto {

Tensor reduce_scatter(Tensor x, DimId from, DimId to, std::vector<std::string> axes) {
  return builder_of("reduce_scatter", {x})
      .emit(reduce_scatter_op, {x}, ReduceScatterAttrs{std::move(axes), {from}, to, false});
}

Tensor reduce_scatter_rows(Tensor x, DimId ranks, DimId rows, std::vector<std::string> axes) {
  return builder_of("reduce_scatter", {x})
      .emit(reduce_scatter_op, {x}, ReduceScatterAttrs{std::move(axes), {ranks, rows}, rows, false});
}

Tensor reduce_scatter_flat(Tensor x, DimId to, std::vector<std::string> axes) {
  const DimSet from = x.type().dims;
  return builder_of("reduce_scatter", {x})
      .emit(reduce_scatter_op, {x}, ReduceScatterAttrs{std::move(axes), from, to, true});
}

constinit const Op reduce_scatter_op{
    .name = "reduce_scatter",
    .infer =
        [](const OpCall& c) {
          const ReduceScatterAttrs& a = c.attrs<ReduceScatterAttrs>();
          Type t = c.in(0);
          if (a.flat) {
            t.dims = {a.to};
          } else if (a.from.size() == 2) {
            STRETTO_ASSERT(contains(t.dims, a.from[0]) && contains(t.dims, a.to), "blocks along a dim of its operand");
            t.dims = without(t.dims, {a.from[0]});
          } else {
            STRETTO_ASSERT(a.from.size() == 1 && contains(t.dims, a.from[0]), "cuts a dim of its operand");
            std::replace(t.dims.begin(), t.dims.end(), a.from[0], a.to);
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
          const ReduceScatterAttrs& a = c.attrs<ReduceScatterAttrs>();
          CollectiveShape s{.axes = a.axes};
          if (a.flat) {
            STRETTO_ASSERT(in.contiguous(), "elements in order");
            add_box_dim(s, out.size(a.to), 1, out.stride(a.to));
            s.in_step = out.size(a.to);
            s.valid = in.elements();
            return s;
          }
          const bool apart = a.from.size() == 2;  // the blocks have a dim of their own
          for (DimId d : out.dims)
            add_box_dim(s, out.size(d), in.stride(d == a.to && !apart ? a.from[0] : d), out.stride(d));
          s.in_step = apart ? in.stride(a.from[0]) : out.size(a.to) * in.stride(a.from[0]);
          return s;
        },
    .no_gradient = true,
};

}  // namespace stretto
