#include "stretto/ops/permute.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor permute(Tensor x, const Dims& dims) { return permute_to(x, builder_of("permute", {x}).intern(dims)); }

Tensor permute_to(Tensor x, DimSet dims) {
  Builder& b = builder_of("permute", {x});
  return x.type().dims == dims ? x : b.emit(permute_op, {x}, PermuteAttrs{.dims = std::move(dims)});
}

constinit const Op permute_op{
    .name = "permute",
    .infer =
        [](const OpCall& c) {
          const Type to{c.in(0).dtype, c.attrs<PermuteAttrs>().dims};
          if (!without(to.dims, c.in(0).dims).empty() || !without(c.in(0).dims, to.dims).empty())
            throw Error("permute", "{} cannot be ordered as {}", c.describe(0), c.graph.str(to))
                .hint("name each of its dims once; broadcast adds dims, sum removes them");
          return std::vector<Type>{to};
        },
    .vjp = rules::pass_gradient,
    .spread = rules::linear,
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4}, c{"c", 2};
          e.add(permute(e.real({a, b}), {b, a}));
          e.add(permute(e.real({a, b, c}), {c, a, b}));
        },
    .view = rules::view_by_name,
};

}  // namespace stretto
