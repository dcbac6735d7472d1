#include "stretto/ops/dispatch.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

// Operands: values, place, there, back. Rows are the first operand's or the result's (`into`), tokens the other's.
std::vector<Type> moved(std::string_view where, const OpCall& c, DimId rows, const DimSet& out, bool into) {
  rules::float_unary(c);
  const DimSet &x = c.in(0).dims, &tokens = c.in(1).dims;
  const auto name = [&](DimId d) { return c.graph.dim(d).name; };
  if (contains(x, rows) == into || contains(out, rows) != into)
    throw Error(where, "dim '{}' must be {} dim alone", name(rows), into ? "the result's" : "the first operand's")
        .hint("rename it where else it is");
  for (DimId d : without(into ? out : x, {rows}))
    if (contains(tokens, d))
      throw Error(where, "dim '{}' is one of rows and of tokens", name(d)).hint("rename it in one of them");
  for (DimId d : without(out, {rows}))
    if (!contains(x, d) && (into || !contains(tokens, d)))
      throw Error(where, "dim '{}' is asked for and {} lacks it", name(d), c.describe(0))
          .hint("ask for dims of the operands");
  for (DimId d : without(x, {rows}))
    if (!contains(out, d) && !(into && contains(tokens, d)))
      throw Error(where, "dim '{}' of {} is not asked for", name(d), c.describe(0)).hint("ask for it, or sum over it");
  return {{c.in(0).dtype, out}};
}

Spread spread_of(const OpCall& c) {
  Spread s{.linear = {0}};
  DimSet space;
  for (int i = 0; i < c.inputs(); ++i) space = joined(space, c.in(i).dims);
  for (DimId d : without(space, c.out().dims)) s.reduce.push_back({d, Reduce::sum});
  return s;
}

Tensor emit(const Op& op, Tensor x, const GroupedRows& g, Attrs attrs) {
  return builder_of(op.name, {x, g.place}).emit(op, {x, g.place, g.there, g.back}, std::move(attrs));
}

GroupedRows example_rows(Examples& e, const Dim& b, const Dim& s, const Dim& j, const Dim& rows) {
  return group_rows(e.ids({b, s, j}, 4), b, {"x", 4}, rows);
}

}  // namespace

Tensor dispatch(Tensor x, const GroupedRows& g, const Dims& out) {
  return emit(dispatch_op, x, g, DispatchAttrs{g.rows, builder_of("dispatch", {x}).intern(out)});
}

Tensor combine(Tensor y, const GroupedRows& g, const Dims& out) {
  return emit(combine_op, y, g, CombineAttrs{g.rows, builder_of("combine", {y}).intern(out)});
}

constinit const Op dispatch_op{
    .name = "dispatch",
    .infer =
        [](const OpCall& c) {
          const DispatchAttrs& a = c.attrs<DispatchAttrs>();
          return moved("dispatch", c, a.rows, a.out, true);
        },
    .vjp =
        [](const Vjp& v) {
          const CombineAttrs back{v.attrs<DispatchAttrs>().rows, v.in[0].type().dims};
          const Tensor dx = v.builder.emit(combine_op, {v.grad[0], v.in[1], v.in[2], v.in[3]}, back);
          return std::vector{dx, Tensor{}, Tensor{}, Tensor{}};
        },
    .spread = spread_of,
    .cost = rules::streaming<0>,
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 3}, j{"j", 2}, m{"m", 5}, rows{"rows", 12}, more{"more", 14};
          e.add(dispatch(e.real({b, s, m}), example_rows(e, b, s, j, rows), {rows, m}));
          e.add(dispatch(e.real({b, s, j}), example_rows(e, b, s, j, rows), {rows}));
          e.add(dispatch(e.real({m, s, b}), example_rows(e, b, s, j, more), {m, more}));
        },
    .regroups = Regroups::there,
};

constinit const Op combine_op{
    .name = "combine",
    .infer =
        [](const OpCall& c) {
          const CombineAttrs& a = c.attrs<CombineAttrs>();
          return moved("combine", c, a.rows, a.out, false);
        },
    .vjp =
        [](const Vjp& v) {
          const DispatchAttrs there{v.attrs<CombineAttrs>().rows, v.in[0].type().dims};
          const Tensor dy = v.builder.emit(dispatch_op, {v.grad[0], v.in[1], v.in[2], v.in[3]}, there);
          return std::vector{dy, Tensor{}, Tensor{}, Tensor{}};
        },
    .spread = spread_of,
    .cost = rules::reading<1>,
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 3}, j{"j", 2}, m{"m", 5}, rows{"rows", 12}, more{"more", 14};
          e.add(combine(e.real({rows, m}), example_rows(e, b, s, j, rows), {b, s, m}));
          e.add(combine(e.real({rows}), example_rows(e, b, s, j, rows), {b, s, j}));
          e.add(combine(e.real({m, more}), example_rows(e, b, s, j, more), {m, s, b}));
        },
    .regroups = Regroups::back,
};

}  // namespace stretto
