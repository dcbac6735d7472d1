#include "stretto/ops/broadcast.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor broadcast(Tensor x, const Dims& dims) { return broadcast_to(x, builder_of("broadcast", {x}).intern(dims)); }

Tensor broadcast_to(Tensor x, DimSet dims) {
  return builder_of("broadcast", {x}).emit(broadcast_op, {x}, BroadcastAttrs{.dims = std::move(dims)});
}

constinit const Op broadcast_op{
    .name = "broadcast",
    .infer =
        [](const OpCall& c) {
          const Type to{c.in(0).dtype, c.attrs<BroadcastAttrs>().dims};
          for (DimId d : c.in(0).dims)
            if (!contains(to.dims, d))
              throw Error("broadcast", "{} has dim '{}', which is not in {}", c.describe(0), c.graph.dim(d).name,
                          c.graph.str(to))
                  .hint("name all dims of the result, the old ones too");
          return std::vector<Type>{to};
        },
    .vjp = rules::pass_gradient,
    .spread = rules::linear,
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4}, c{"c", 2};
          e.add(broadcast(e.real({b}), {a, b}));
          e.add(broadcast(e.real({a, b}), {b, c, a}));
          e.add(broadcast(e.real({}), a));
        },
    .view = rules::view_by_name,
};

}  // namespace stretto
