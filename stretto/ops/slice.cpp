#include "stretto/ops/slice.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {
void check_range(const OpCall& c, DimId small, DimId large, i64 start) {
  const Dim &s = c.graph.dim(small), &l = c.graph.dim(large);
  if (start < 0 || start + s.valid() > l.valid() || start + s.size > l.size)
    throw Error(c.node.op->name, "{} from {} does not lie within {} (of {})", s.str(), start, l.str(), c.describe(0))
        .hint("start plus the smaller size must be at most {}", l.valid());
}
Type replaced(Type t, DimId from, DimId to) {
  for (DimId& d : t.dims)
    if (d == from) d = to;
  return t;
}
}  // namespace

Tensor slice(Tensor x, const Dim& from, const Dim& to, i64 start) {
  const DimId d = rules::dim_of("slice", x, from);
  return x.builder->emit(slice_op, {x}, SliceAttrs{.from = d, .to = x.builder->intern(to), .start = start});
}

Tensor pad(Tensor x, const Dim& from, const Dim& to, i64 start) {
  const DimId d = rules::dim_of("pad", x, from);
  return x.builder->emit(pad_op, {x}, SliceAttrs{.from = d, .to = x.builder->intern(to), .start = start});
}

constinit const Op slice_op{
    .name = "slice",
    .infer =
        [](const OpCall& c) {
          const SliceAttrs& a = c.attrs<SliceAttrs>();
          check_range(c, a.to, a.from, a.start);
          return std::vector<Type>{replaced(c.in(0), a.from, a.to)};
        },
    .vjp =
        [](const Vjp& v) {
          const SliceAttrs a = v.attrs<SliceAttrs>();
          return std::vector{
              v.builder.emit(pad_op, {v.grad[0]}, SliceAttrs{.from = a.to, .to = a.from, .start = a.start})};
        },
    .spread =
        [](const OpCall& c) {
          return Spread{.serial = {c.attrs<SliceAttrs>().from, c.attrs<SliceAttrs>().to}, .linear = {0}};
        },
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 7}, part{"part", 4};
          e.add(slice(e.real({a, b}), b, part, 0));
          e.add(slice(e.real({b, a}), b, part, 3));
        },
    .view =
        [](const OpCall& c, int) {
          ViewMap map = rules::in_order(c.in(0).dims);
          map.start[position(c.in(0).dims, c.attrs<SliceAttrs>().from)] = c.attrs<SliceAttrs>().start;
          return map;
        },
};

constinit const Op pad_op{
    .name = "pad",
    .infer =
        [](const OpCall& c) {
          const SliceAttrs& a = c.attrs<SliceAttrs>();
          check_range(c, a.from, a.to, a.start);
          return std::vector<Type>{replaced(c.in(0), a.from, a.to)};
        },
    .vjp =
        [](const Vjp& v) {
          const SliceAttrs a = v.attrs<SliceAttrs>();
          return std::vector{
              v.builder.emit(slice_op, {v.grad[0]}, SliceAttrs{.from = a.to, .to = a.from, .start = a.start})};
        },
    .spread =
        [](const OpCall& c) {
          return Spread{.serial = {c.attrs<SliceAttrs>().from, c.attrs<SliceAttrs>().to}, .linear = {0}};
        },
    .cost = rules::streaming<0>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4}, wide{"wide", 7};
          e.add(pad(e.real({a, b}), b, wide, 2));
          e.add(pad(e.real({b, a}), b, wide));
        },
    .accumulates = true,
    .relocates = true,
};

}  // namespace stretto
