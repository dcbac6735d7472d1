#include "stretto/ops/index.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {
void check_range(const OpCall& c, DimId dim, i64 at) {
  if (at < 0 || at >= c.graph.dim(dim).valid())
    throw Error(c.node.op->name, "there is no element {} along '{}' (of {})", at, c.graph.dim(dim).name, c.describe(0))
        .hint("the elements are 0 to {}", c.graph.dim(dim).valid() - 1);
}
}  // namespace

Tensor index(Tensor x, const Dim& dim, i64 at) {
  const DimId d = rules::dim_of("index", x, dim);
  return x.builder->emit(index_op, {x}, IndexAttrs{.dim = d, .at = at});
}

Tensor unindex(Tensor x, const Dim& dim, i64 at, i64 position) {
  Builder& b = builder_of("unindex", {x});
  return b.emit(unindex_op, {x}, UnindexAttrs{.dim = b.intern(dim), .at = at, .position = position});
}

constinit const Op index_op{
    .name = "index",
    .infer =
        [](const OpCall& c) {
          const IndexAttrs& a = c.attrs<IndexAttrs>();
          check_range(c, a.dim, a.at);
          return std::vector<Type>{{c.in(0).dtype, without(c.in(0).dims, {a.dim})}};
        },
    .vjp =
        [](const Vjp& v) {
          const IndexAttrs a = v.attrs<IndexAttrs>();
          const i64 place = position(v.in[0].type().dims, a.dim);
          return std::vector{
              v.builder.emit(unindex_op, {v.grad[0]}, UnindexAttrs{.dim = a.dim, .at = a.at, .position = place})};
        },
    .spread = [](const OpCall& c) { return Spread{.serial = {c.attrs<IndexAttrs>().dim}, .linear = {0}}; },
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          e.add(index(e.real({a, b}), a, 1));
          e.add(index(e.real({a, b}), b, 3));
          e.add(index(e.real({a}), a, 0));
        },
    .view =
        [](const OpCall& c, int) {
          ViewMap map = rules::by_name(c.in(0).dims, c.out().dims);
          map.start[position(c.in(0).dims, c.attrs<IndexAttrs>().dim)] = c.attrs<IndexAttrs>().at;
          return map;
        },
};

constinit const Op unindex_op{
    .name = "unindex",
    .infer =
        [](const OpCall& c) {
          const UnindexAttrs& a = c.attrs<UnindexAttrs>();
          check_range(c, a.dim, a.at);
          return std::vector<Type>{{c.in(0).dtype, rules::inserted(c, a.dim, a.position)}};
        },
    .vjp =
        [](const Vjp& v) {
          const UnindexAttrs a = v.attrs<UnindexAttrs>();
          return std::vector{v.builder.emit(index_op, {v.grad[0]}, IndexAttrs{.dim = a.dim, .at = a.at})};
        },
    .spread = [](const OpCall& c) { return Spread{.serial = {c.attrs<UnindexAttrs>().dim}, .linear = {0}}; },
    .cost = rules::streaming<0>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4}, c{"c", 2};
          e.add(unindex(e.real({a, b}), c, 1));
          e.add(unindex(e.real({a, b}), c, 0, 1));
          e.add(unindex(e.real({a, b}), c, 1, 2));
        },
    .accumulates = true,
    .relocates = true,
};

}  // namespace stretto
