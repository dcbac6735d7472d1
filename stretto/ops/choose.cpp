#include "stretto/ops/choose.h"

#include "stretto/ops/cast.h"
#include "stretto/ops/choose_grad.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace choosing {
namespace {

DimSet space(const OpCall& c) {
  DimSet all = joined(joined(c.in(2).dims, c.in(0).dims), c.in(1).dims);
  return joined(all, c.out().dims);
}

}  // namespace

void check_types(std::string_view where, const OpCall& c) {
  if (c.in(0).dtype != c.in(1).dtype || !is_float(c.in(0).dtype))
    throw Error(where, "{} is {} and {} is {}", c.describe(0), name_of(c.in(0).dtype), c.describe(1),
                name_of(c.in(1).dtype))
        .hint("both must have one float type: cast(x, f32)");
  if (c.in(2).dtype != i32)
    throw Error(where, "{} is {}, and places are i32", c.describe(2), name_of(c.in(2).dtype))
        .hint("use top_k(gates, experts, choice)");
}

Spread spread(const OpCall& c, DimId expert, std::vector<int> masked) {
  Spread s{.linear = {0, 1}};
  for (DimId d : without(space(c), c.out().dims)) s.reduce.push_back({d, Reduce::sum});
  s.rows = Spread::Rows{.which = 2, .of = {expert}, .masked = std::move(masked)};
  return s;
}

// Of a rank that has a part of the experts, or rows that are grouped by them: what it computes in the mean, as products
// of as many rows for each of its experts.
Cost cost(const OpCall& c, DimId expert) {
  Cost cost = c.streaming(0);
  const Dim& e = c.graph.dim(expert);
  double rows = 1, left = 1, right = 1;  // left: what x has beside its rows
  bool all_here = false;
  for (DimId d : without(space(c), {expert})) {
    const Dim& dim = c.graph.dim(d);
    double& side = contains(c.in(2).dims, d) ? rows : contains(c.in(0).dims, d) ? left : right;
    side *= double(dim.filled ? dim.filled : dim.size);
    all_here = all_here || dim.by == e.name;
  }
  if (!all_here && !e.axes.empty()) rows *= double(e.size) / double(e.valid());
  cost.flops = 2 * rows * left * right;
  const bool of_weights = contains(c.out().dims, expert);
  const double each = rows / double(e.size);
  cost.shape =
      of_weights ? ProductShape{double(e.size), left, right, each} : ProductShape{double(e.size), each, right, left};
  return cost;
}

std::size_t Workspace::bytes(DType operands, DType result) const {
  const std::size_t lists = std::size_t(offsets()) * sizeof(i64);
  const auto floats = [](i64 count) { return std::size_t(count) * size_of(f32); };
  if (operands != bf16) return lists;  // rows are read and written where they lie
  if (result == bf16) {
    const TiledBlock t = tiled_block(block_rows(), columns(), k, bf16);
    const std::size_t tiled = t.bytes() + std::size_t(t.m * k) * size_of(bf16);
    const std::size_t widened = floats(block_rows() * (summed() + columns()) + summed() * columns());
    return lists + std::max(tiled, widened) + floats(places * columns());
  }
  const std::size_t tiled =
      tiled_block(k, n, block_rows(), f32).bytes() + std::size_t(block_rows() * (k + n)) * size_of(bf16);
  return lists + std::max(tiled, floats(block_rows() * (k + n)));
}

std::size_t scratch(const OpCall& c, DimId expert, const Type& w) {
  Workspace s{.experts = c.graph.size(expert), .rows = 1};
  for (DimId d : without(w.dims, {expert})) (contains(c.in(0).dims, d) ? s.k : s.n) *= c.graph.size(d);
  i64 places = 1;
  for (DimId d : c.in(2).dims) {
    s.rows *= c.graph.size(d);
    if (contains(c.out().dims, d)) places *= c.graph.size(d);
  }
  if (c.out().dtype == bf16 && places < s.rows) s.places = places;
  return s.bytes(c.in(0).dtype, c.out().dtype);
}

}  // namespace choosing

namespace {

Tensor emit_choose(Tensor x, Tensor w, Tensor which, DimId expert, const DimSet& out) {
  return builder_of("choose", {x, w, which}).emit(choose_op, {x, w, which}, ChooseAttrs{expert, out});
}

void check_dims(const OpCall& c) {
  const ChooseAttrs& a = c.attrs<ChooseAttrs>();
  const DimSet inner = without(c.in(1).dims, {a.expert});
  const auto name = [&](DimId d) { return c.graph.dim(d).name; };
  for (DimId d : inner)
    if (contains(c.in(2).dims, d) || contains(c.in(0).dims, d) == contains(a.out, d))
      throw Error("choose", "dim '{}' of {} must be either summed with {} or new in the result", name(d), c.describe(1),
                  c.describe(0))
          .hint("rename it in one of them");
  for (DimId d : c.in(0).dims)
    if (!contains(c.in(2).dims, d) && !contains(inner, d))
      throw Error("choose", "dim '{}' of {} is in neither {} nor {}", name(d), c.describe(0), c.describe(1),
                  c.describe(2))
          .hint("rows are what `which` has");
  for (DimId d : a.out)
    if (!contains(c.in(2).dims, d) && !contains(inner, d))
      throw Error("choose", "dim '{}' is asked for and neither {} nor {} has it", name(d), c.describe(1), c.describe(2))
          .hint("ask for dims of the operands");
}

}  // namespace

Tensor choose(Tensor x, Tensor w, Tensor which, const Dim& expert, const Dims& out) {
  Builder& b = builder_of("choose", {x, w, which});
  DimSet dims;
  for (const Dim& d : out) dims.push_back(b.intern(d));
  return emit_choose(x, w, which, rules::dim_of("choose", w, expert), dims);
}

constinit const Op choose_op{
    .name = "choose",
    .infer =
        [](const OpCall& c) {
          choosing::check_types("choose", c);
          check_dims(c);
          return std::vector<Type>{{c.in(0).dtype, c.attrs<ChooseAttrs>().out}};
        },
    .vjp =
        [](const Vjp& v) {
          const ChooseAttrs a = v.attrs<ChooseAttrs>();
          Tensor dx, dw;
          if (v.wanted[0]) dx = emit_choose(v.grad[0], v.in[1], v.in[2], a.expert, v.in[0].type().dims);
          if (v.wanted[1]) {
            const Tensor sums = choose_grad(v.in[0], v.grad[0], v.in[2], a.expert, v.in[1].type().dims);
            dw = cast(sums, v.in[1].dtype());
          }
          return std::vector{dx, dw, Tensor{}};
        },
    .spread = [](const OpCall& c) { return choosing::spread(c, c.attrs<ChooseAttrs>().expert, {0}); },
    .cost = [](const OpCall& c) { return choosing::cost(c, c.attrs<ChooseAttrs>().expert); },
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 3}, x{"x", 4}, j{"j", 2}, m{"m", 5}, f{"f", 6}, p = Dim{"p", 5}.padded(8);
          e.add(choose(e.real({b, s, m}), e.real({x, m, f}), e.ids({b, s, j}, 4), x, {b, s, j, f}));
          e.add(choose(e.real({b, s, j, f}), e.real({x, f, m}), e.ids({b, s, j}, 4), x, {b, s, m}));
          e.add(choose(e.real({s, m}), e.real({f, x, m}), e.ids({s}, 4), x, {s, f}));
          e.add(choose(e.real({m, s}), e.real({m, x}), e.ids({s}, 4), x, {s}));
          e.add(choose(e.real({s, m}), e.real({x, m, f, b}), e.ids({s}, 4), x, {b, s, f}));
          e.add(choose(e.real({s, m}), e.real({x, m, p}), e.ids({s, j}, 4), x, {s, j, p}));
        },
    .scratch = [](const OpCall& c) { return choosing::scratch(c, c.attrs<ChooseAttrs>().expert, c.in(1)); },
    .costly = Costly::product,
};

}  // namespace stretto
