// Ops that only move elements, from their definitions: which element of which operand stands where.
#include <cmath>

#include "ops/oracle.h"
#include "stretto/ops/block.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/concat.h"
#include "stretto/ops/fold.h"
#include "stretto/ops/index.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/slice.h"
#include "stretto/ops/stack.h"
#include "stretto/ops/stripe.h"
#include "stretto/ops/values.h"

namespace stretto::test {
namespace {

double same(const Element& e) { return e.in(0); }

double block(const Element& e) {
  const BlockAttrs& a = e.attrs<BlockAttrs>();
  if (!a.flat) return e.in(0, e.at.with(a.from[0], e.at[a.to]));
  const i64 wanted = e.at[a.to];
  i64 count = 0;
  double found = 0;
  e.each(e.dims(0), e.at, [&](const At& j) {
    if (count++ == wanted) found = e.in(0, j);
  });
  return found;
}

double unblock(const Element& e) {
  const UnblockAttrs& a = e.attrs<UnblockAttrs>();
  return e.at[a.to] < e.size(a.from) ? e.in(0, e.at.with(a.from, e.at[a.to])) : 0;
}

double cast(const Element& e) { return is_float(e.attrs<CastAttrs>().to) ? e.in(0) : std::trunc(e.in(0)); }

double concat(const Element& e) {
  const ConcatAttrs& a = e.attrs<ConcatAttrs>();
  i64 index = e.at[a.to];
  int part = 0;
  for (; index >= e.size(a.along[part]); ++part) index -= e.size(a.along[part]);
  return e.in(part, e.at.with(a.along[part], index));
}

// Where a place of the parts lies along the whole.
i64 folded(const FoldAttrs& a, const At& at) {
  i64 index = a.start;
  for (std::size_t i = 0; i < a.parts.size(); ++i) index += a.steps[i] * at[a.parts[i]];
  return index;
}
double fold(const Element& e) {
  const FoldAttrs& a = e.attrs<FoldAttrs>();
  return e.sum(a.parts, [&](const At& j) { return folded(a, j) == e.at[a.whole] ? e.in(0, j) : 0; });
}
double unfold(const Element& e) {
  const FoldAttrs& a = e.attrs<FoldAttrs>();
  return e.in(0, e.at.with(a.whole, folded(a, e.at)));
}

double index(const Element& e) { return e.in(0, e.at.with(e.attrs<IndexAttrs>().dim, e.attrs<IndexAttrs>().at)); }

double unindex(const Element& e) {
  return e.at[e.attrs<UnindexAttrs>().dim] == e.attrs<UnindexAttrs>().at ? e.in(0) : 0;
}

double iota(const Element& e) { return double(e.at[e.attrs<IotaAttrs>().dim]); }

double pad(const Element& e) {
  const SliceAttrs& a = e.attrs<SliceAttrs>();
  const i64 index = e.at[a.to] - a.start;
  return index >= 0 && index < e.size(a.from) ? e.in(0, e.at.with(a.from, index)) : 0;
}

double rename(const Element& e) {
  const RenameAttrs& a = e.attrs<RenameAttrs>();
  At there = e.at;
  for (std::size_t i = 0; i < a.from.size(); ++i) there = there.with(a.from[i], e.at[a.to[i]]);
  return e.in(0, there);
}

double slice(const Element& e) {
  const SliceAttrs& a = e.attrs<SliceAttrs>();
  return e.in(0, e.at.with(a.from, e.at[a.to] + a.start));
}

double stack(const Element& e) { return e.in(int(e.at[e.attrs<StackAttrs>().dim])); }
double unstack(const Element& e) { return e.in(0, e.at.with(e.attrs<UnstackAttrs>().dim, e.result)); }

// Of every block along the whole, the index-th run of rows.
double stripe(const Element& e) {
  const StripeAttrs& a = e.attrs<StripeAttrs>();
  const i64 rows = e.size(a.to.back()), ranks = a.to.size() == 2 ? e.size(a.to[0]) : 1;
  const i64 block = e.size(a.whole) / ranks, rank = a.to.size() == 2 ? e.at[a.to[0]] : 0;
  return e.in(0, e.at.with(a.whole, rank * block + a.index * rows + e.at[a.to.back()]));
}
double weave(const Element& e) {
  const WeaveAttrs& a = e.attrs<WeaveAttrs>();
  const i64 rows = e.size(a.from.back()), ranks = a.from.size() == 2 ? e.size(a.from[0]) : 1;
  const i64 block = e.size(a.whole) / ranks, within = e.at[a.whole] % block;
  At there = e.at.with(a.from.back(), within % rows);
  if (a.from.size() == 2) there = there.with(a.from[0], e.at[a.whole] / block);
  return e.in(int(within / rows), there);
}

double values(const Element& e) {
  const ValuesAttrs& a = e.attrs<ValuesAttrs>();
  std::size_t place = 0;
  for (std::size_t d = 0; d < a.dims.size(); ++d) place = place * a.sizes[d] + e.at[a.dims[d]];
  return a.numbers.all[place];
}

constexpr NamedOracle shape_table[] = {
    {"block", block},
    {"boundary", same},
    {"broadcast", same},
    {"cast", cast},
    {"concat", concat},
    {"fold", fold},
    {"index", index},
    {"iota", iota},
    {"labels", same},
    {"pad", pad},
    {"permute", same},
    {"rename", rename},
    {"slice", slice},
    {"stack", stack},
    {"stop_gradient", same},
    {"stripe", stripe},
    {"unblock", unblock},
    {"unfold", unfold},
    {"unindex", unindex},
    {"unstack", unstack},
    {"values", values},
    {"weave", weave},
};

}  // namespace

std::span<const NamedOracle> oracles_of_shapes() { return shape_table; }

}  // namespace stretto::test
