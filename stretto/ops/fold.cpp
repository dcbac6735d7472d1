#include "stretto/ops/fold.h"

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/rename.h"

namespace stretto {
namespace {

// The last element must lie within the whole, whatever numbers were given.
void check_reach(const OpCall& c) {
  const FoldAttrs& a = c.attrs<FoldAttrs>();
  const std::string_view op = c.node.op->name;
  const Dim& whole = c.graph.dim(a.whole);
  if (a.parts.empty() || a.parts.size() != a.steps.size())
    throw Error(op, "there are {} dims and {} steps", a.parts.size(), a.steps.size()).hint("give a step for each dim");
  i64 room = whole.valid() - 1 - a.start;
  bool fits = a.start >= 0 && room >= 0;
  for (std::size_t i = 0; fits && i < a.parts.size(); ++i) {
    const i64 more = c.graph.dim(a.parts[i]).size - 1, step = a.steps[i];
    fits = step >= 1 && (more == 0 || step <= room / more);
    if (fits) room -= more * step;
  }
  if (!fits)
    throw Error(op, "from {} in steps of {} it does not lie within {} (of {})", a.start, fmt::join(a.steps, ", "),
                whole.str(), c.describe(0))
        .hint("start, plus every step times its size less one, must be below {}", whole.valid());
}

// `gone` becomes `put`, in the place of the first of them.
Type with_dims(Type t, const DimSet& gone, const DimSet& put) {
  const auto first = std::ranges::find_if(t.dims, [&](DimId d) { return contains(gone, d); });
  const DimSet before(t.dims.begin(), first);
  DimSet all = before;
  all.insert(all.end(), put.begin(), put.end());
  for (DimId d : without(t.dims, joined(before, gone))) all.push_back(d);
  t.dims = all;
  return t;
}

Spread fold_spread(const OpCall& c) {
  const FoldAttrs& a = c.attrs<FoldAttrs>();
  return Spread{.serial = joined({a.whole}, a.parts), .linear = {0}};
}

i64 elements_of(const Dims& dims) {
  i64 n = 1;
  for (const Dim& d : dims) n *= d.size;
  return n;
}
std::vector<i64> row_major(const Dims& dims) {
  std::vector<i64> steps(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) steps[i - 1] = steps[i] * dims[i].size;
  return steps;
}
Dim joined_dim(const Dims& dims) {
  std::vector<std::string> names;
  for (const Dim& d : dims) names.push_back(d.name);
  return dims.size() == 1 ? dims[0] : Dim{join(names, "."), elements_of(dims)};
}

}  // namespace

Tensor unfold(Tensor x, const Dim& whole, const Dims& parts, std::vector<i64> steps, i64 start) {
  Builder& b = builder_of("unfold", {x});
  FoldAttrs a{.whole = rules::dim_of("unfold", x, whole), .parts = {}, .steps = std::move(steps), .start = start};
  for (const Dim& d : parts) a.parts.push_back(b.intern(d));
  return b.emit(unfold_op, {x}, std::move(a));
}

Tensor fold(Tensor y, const Dims& parts, const Dim& whole, std::vector<i64> steps, i64 start) {
  Builder& b = builder_of("fold", {y});
  return b.emit(fold_op, {y},
                FoldAttrs{.whole = b.intern(whole),
                          .parts = rules::dims_of("fold", y, parts),
                          .steps = std::move(steps),
                          .start = start});
}

Tensor refold(Tensor x, const Dims& from, const Dims& to) {
  if (from.empty() || to.empty() || elements_of(from) != elements_of(to))
    throw Error("refold", "{} dims of {} elements become {} of {}", from.size(), elements_of(from), to.size(),
                elements_of(to))
        .hint("both have the same number of elements");
  if (from.size() == 1 && to.size() == 1) return rename(x, from[0], to[0]);
  const Dim whole = from.size() > 1 && to.size() > 1 ? joined_dim(from) : from.size() > 1 ? to[0] : from[0];
  if (from.size() > 1) x = fold(x, from, whole, row_major(from));
  return to.size() > 1 ? unfold(x, whole, to, row_major(to)) : x;
}

constinit const Op unfold_op{
    .name = "unfold",
    .infer =
        [](const OpCall& c) {
          const FoldAttrs& a = c.attrs<FoldAttrs>();
          check_reach(c);
          return std::vector<Type>{with_dims(c.in(0), {a.whole}, a.parts)};
        },
    .vjp = [](const Vjp& v) { return std::vector{v.builder.emit(fold_op, {v.grad[0]}, v.attrs<FoldAttrs>())}; },
    .spread = fold_spread,
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 2}, b{"b", 3}, seq{"seq", 12}, place{"place", 4}, tap{"tap", 3};
          e.add(unfold(e.real({a, seq, b}), seq, {place, tap}, {2, 1}));
          e.add(unfold(e.real({seq, a}), seq, {place, tap}, {1, 3}, 2));
          e.add(unfold(e.real({a, seq}), seq, {place}, {3}, 1));
          e.add(refold(e.real({seq}), {seq}, {place, tap}));
        },
    .view =
        [](const OpCall& c, int) {
          const FoldAttrs& a = c.attrs<FoldAttrs>();
          const DimSet& outer = c.in(0).dims;
          ViewMap map{.from = {}, .start = std::vector<i64>(outer.size(), 0)};
          for (DimId d : c.out().dims) {
            const std::optional<int> part = find(a.parts, d);
            map.from.push_back(find(outer, part ? a.whole : d));
            map.step.push_back(part ? a.steps[std::size_t(*part)] : 1);
          }
          map.start[std::size_t(position(outer, a.whole))] = a.start;
          return map;
        },
};

constinit const Op fold_op{
    .name = "fold",
    .infer =
        [](const OpCall& c) {
          const FoldAttrs& a = c.attrs<FoldAttrs>();
          check_reach(c);
          return std::vector<Type>{with_dims(c.in(0), a.parts, {a.whole})};
        },
    .vjp = [](const Vjp& v) { return std::vector{v.builder.emit(unfold_op, {v.grad[0]}, v.attrs<FoldAttrs>())}; },
    .spread = fold_spread,
    .cost = rules::reading<1>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 2}, b{"b", 3}, seq{"seq", 12}, place{"place", 4}, tap{"tap", 3};
          e.add(fold(e.real({a, place, tap, b}), {place, tap}, seq, {2, 1}));
          e.add(fold(e.real({tap, a, place}), {place, tap}, seq, {1, 3}, 2));
          e.add(fold(e.real({a, place}), {place}, seq, {3}, 1));
          e.add(refold(e.real({a, tap, place}), {tap, place}, {Dim{"six", 6}, Dim{"two", 2}}));
        },
    .accumulates = true,
};

}  // namespace stretto
