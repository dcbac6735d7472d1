#include "stretto/ops/stripe.h"

#include <algorithm>

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

// How many stripes of these dims a dim has.
i64 stripes_of(const Graph& g, DimId whole, const DimSet& dims) {
  i64 one = 1;
  for (DimId d : dims) one *= g.size(d);
  STRETTO_ASSERT(one > 0 && g.size(whole) % one == 0 && (dims.size() == 1 || dims.size() == 2), "equal stripes");
  return g.size(whole) / one;
}

// Where a stripe lies inside the whole, whose dims are `outer`.
ViewMap inside(const Graph& g, const DimSet& outer, const DimSet& inner, DimId whole, const DimSet& dims, i64 index) {
  const i64 rows = g.size(dims.back()), block = rows * stripes_of(g, whole, dims);
  ViewMap map{.from = {}, .start = std::vector<i64>(outer.size(), 0)};
  for (DimId d : inner) {
    const bool split = contains(dims, d);
    map.from.push_back(find(outer, split ? whole : d));
    map.step.push_back(split && d != dims.back() ? block : 1);
  }
  map.start[position(outer, whole)] = index * rows;
  return map;
}

}  // namespace

Tensor stripe(Tensor x, DimId whole, DimSet to, i64 index) {
  return builder_of("stripe", {x}).emit(stripe_op, {x}, StripeAttrs{whole, std::move(to), index});
}

Tensor weave(const std::vector<Tensor>& stripes, DimSet from, DimId whole) {
  STRETTO_ASSERT(!stripes.empty());
  return builder_of("weave", {stripes[0]}).emit(weave_op, stripes, WeaveAttrs{std::move(from), whole});
}

constinit const Op stripe_op{
    .name = "stripe",
    .infer =
        [](const OpCall& c) {
          const StripeAttrs& a = c.attrs<StripeAttrs>();
          STRETTO_ASSERT(a.index >= 0 && a.index < stripes_of(c.graph, a.whole, a.to), "one of the stripes");
          Type t = c.in(0);
          const int at = position(t.dims, a.whole);
          t.dims.erase(t.dims.begin() + at);
          t.dims.insert(t.dims.begin() + at, a.to.begin(), a.to.end());
          return std::vector<Type>{t};
        },
    .spread = rules::nothing,
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          const DimId whole = e.builder.intern(Dim{"whole", 12}), rows = e.builder.intern(Dim{"rows", 3}),
                      ranks = e.builder.intern(Dim{"ranks", 2});
          e.add(stripe(e.real({{"a", 2}, {"whole", 12}, {"b", 3}}), whole, {ranks, rows}, 1));
          e.add(stripe(e.real({{"a", 2}, {"whole", 12}}), whole, {rows}, 3));
        },
    .view =
        [](const OpCall& c, int) {
          const StripeAttrs& a = c.attrs<StripeAttrs>();
          return inside(c.graph, c.in(0).dims, c.out().dims, a.whole, a.to, a.index);
        },
    .no_gradient = true,
};

constinit const Op weave_op{
    .name = "weave",
    .infer =
        [](const OpCall& c) {
          const WeaveAttrs& a = c.attrs<WeaveAttrs>();
          STRETTO_ASSERT(c.inputs() == stripes_of(c.graph, a.whole, a.from), "all stripes");
          for (int i = 1; i < c.inputs(); ++i) STRETTO_ASSERT(c.in(i) == c.in(0), "of one type");
          Type t = c.in(0);
          std::replace(t.dims.begin(), t.dims.end(), a.from.back(), a.whole);
          t.dims = without(t.dims, {a.from.begin(), a.from.end() - 1});
          return std::vector<Type>{t};
        },
    .spread = rules::nothing,
    .cost = rules::streaming<0>,
    .examples =
        [](Examples& e) {
          const DimId whole = e.builder.intern(Dim{"whole", 12}), rows = e.builder.intern(Dim{"rows", 3}),
                      ranks = e.builder.intern(Dim{"ranks", 2});
          const Dims both{{"a", 2}, {"ranks", 2}, {"rows", 3}, {"b", 3}}, one{{"a", 2}, {"rows", 3}};
          e.add(weave({e.real(both), e.real(both)}, {ranks, rows}, whole));
          e.add(weave({e.real(one), e.real(one), e.real(one), e.real(one)}, {rows}, whole));
        },
    .into =
        [](const OpCall& c, int operand) {
          const WeaveAttrs& a = c.attrs<WeaveAttrs>();
          return inside(c.graph, c.out().dims, c.in(operand).dims, a.whole, a.from, operand);
        },
    .costly = Costly::as_operands,
    .no_gradient = true,
};

}  // namespace stretto
