#include "stretto/ops/all_reduce.h"

#include "stretto/ir/collective.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor all_reduce(Tensor x, std::vector<std::string> axes, Reduce how) {
  if (axes.empty()) return x;
  return builder_of("all_reduce", {x}).emit(all_reduce_op, {x}, AllReduceAttrs{std::move(axes), how == Reduce::max});
}

constinit const Op all_reduce_op{
    .name = "all_reduce",
    .infer = rules::same_as_first,
    .spread = rules::nothing,
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          e.add(all_reduce(e.real({{"a", 3}}), {"tensor"}));
        },
    .in_place = rules::first_in_place,
    .costly = Costly::yes,
    .collective_kind = CollectiveKind::reduce,
    .collective =
        [](const OpCall& c, const View& in, const View& out) {
          const AllReduceAttrs& a = c.attrs<AllReduceAttrs>();
          CollectiveShape s{.how = a.max ? Reduce::max : Reduce::sum, .axes = a.axes};
          for (DimId d : in.dims) add_box_dim(s, in.size(d), in.stride(d), out.stride(d));
          return s;
        },
    .no_gradient = true,  // collectives are made after differentiation
};

}  // namespace stretto
