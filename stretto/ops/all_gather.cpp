#include "stretto/ops/all_gather.h"

#include <algorithm>

#include "stretto/ir/collective.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/rules.h"

namespace stretto {

Tensor all_gather(Tensor x, DimId from, DimId to, std::vector<std::string> axes) {
  return builder_of("all_gather", {x}).emit(all_gather_op, {x}, AllGatherAttrs{std::move(axes), from, {to}, false});
}

Tensor all_gather_rows(Tensor x, DimId rows, DimId ranks, std::vector<std::string> axes) {
  return builder_of("all_gather", {x})
      .emit(all_gather_op, {x}, AllGatherAttrs{std::move(axes), rows, {ranks, rows}, false});
}

Tensor all_gather_flat(Tensor x, DimSet to, std::vector<std::string> axes) {
  const DimId from = x.type().dims.at(0);
  return builder_of("all_gather", {x})
      .emit(all_gather_op, {x}, AllGatherAttrs{std::move(axes), from, std::move(to), true});
}

constinit const Op all_gather_op{
    .name = "all_gather",
    .infer =
        [](const OpCall& c) {
          const AllGatherAttrs& a = c.attrs<AllGatherAttrs>();
          Type t = c.in(0);
          STRETTO_ASSERT(contains(t.dims, a.from), "gathers a dim of its operand");
          if (a.flat) {
            t.dims = a.to;
          } else if (a.to.size() == 2) {
            t.dims.insert(t.dims.begin() + position(t.dims, a.from), a.to[0]);
          } else {
            STRETTO_ASSERT(a.to.size() == 1 && c.graph.size(a.to[0]) % c.graph.size(a.from) == 0);
            std::replace(t.dims.begin(), t.dims.end(), a.from, a.to[0]);
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
          const AllGatherAttrs& a = c.attrs<AllGatherAttrs>();
          CollectiveShape s{.axes = a.axes};
          if (a.flat) {
            STRETTO_ASSERT(out.contiguous(), "elements in order");
            add_box_dim(s, in.size(a.from), in.stride(a.from), 1);
            s.out_step = in.size(a.from);
            s.valid = out.elements();
            return s;
          }
          const bool apart = a.to.size() == 2;  // the ranks have a dim of their own
          for (DimId d : in.dims)
            add_box_dim(s, in.size(d), in.stride(d), out.stride(d == a.from && !apart ? a.to[0] : d));
          s.out_step = apart ? out.stride(a.to[0]) : in.size(a.from) * out.stride(a.to[0]);
          return s;
        },
    .no_gradient = true,
};

}  // namespace stretto
