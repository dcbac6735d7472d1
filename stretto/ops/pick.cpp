#include "stretto/ops/pick.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

DimSet interned(Builder& b, const Dims& dims) {
  DimSet all;
  for (const Dim& d : dims) all.push_back(b.intern(d));
  return all;
}

// Dims that places go over are the result's alone (`into`) or the first operand's, and `out` has nothing else that the
// operands lack.
std::vector<Type> picked(std::string_view where, const OpCall& c, const DimSet& over, const DimSet& out, bool into) {
  rules::float_unary(c);
  if (c.in(1).dtype != i32)
    throw Error(where, "{} is {}, and places are i32", c.describe(1), name_of(c.in(1).dtype))
        .hint("use top_k(gates, experts, choice)");
  const DimSet& x = c.in(0).dims;
  for (DimId d : over)
    if (contains(c.in(1).dims, d) || contains(x, d) == into || contains(out, d) != into)
      throw Error(where, "places go over dim '{}', which {} alone has", c.graph.dim(d).name,
                  into ? "the result" : "the first operand")
          .hint("rename it where else it is");
  for (DimId d : without(out, over))
    if (!contains(x, d) && !contains(c.in(1).dims, d))
      throw Error(where, "dim '{}' is asked for and neither {} nor {} has it", c.graph.dim(d).name, c.describe(0),
                  c.describe(1))
          .hint("ask for dims of the operands");
  return {{c.in(0).dtype, out}};
}

Spread spread_of(const OpCall& c, const DimSet& over, std::vector<int> masked) {
  Spread s{.linear = {0}};
  for (DimId d : without(joined(c.in(0).dims, c.in(1).dims), c.out().dims)) s.reduce.push_back({d, Reduce::sum});
  s.rows = Spread::Rows{.which = 1, .of = over, .masked = std::move(masked)};
  return s;
}

}  // namespace

Tensor pick(Tensor x, Tensor which, const Dims& over, const Dims& out) {
  Builder& b = builder_of("pick", {x, which});
  return b.emit(pick_op, {x, which}, PickAttrs{rules::dims_of("pick", x, over), interned(b, out)});
}

Tensor unpick(Tensor x, Tensor which, const Dims& over, const Dims& out) {
  Builder& b = builder_of("unpick", {x, which});
  return b.emit(unpick_op, {x, which}, UnpickAttrs{interned(b, over), interned(b, out)});
}

constinit const Op pick_op{
    .name = "pick",
    .infer =
        [](const OpCall& c) {
          const PickAttrs& a = c.attrs<PickAttrs>();
          return picked("pick", c, a.over, a.out, false);
        },
    .vjp =
        [](const Vjp& v) {
          const UnpickAttrs back{v.attrs<PickAttrs>().over, v.in[0].type().dims};
          return std::vector{v.builder.emit(unpick_op, {v.grad[0], v.in[1]}, back), Tensor{}};
        },
    .spread = [](const OpCall& c) { return spread_of(c, c.attrs<PickAttrs>().over, {}); },
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 6}, x{"x", 4}, two{"two", 2}, m{"m", 5}, room{"room", 3};
          e.add(pick(e.real({b, s, x}), e.ids({b, s, two}, 4), x, {b, s, two}));
          e.add(pick(e.real({x, s}), e.ids({s, two}, 4), x, {two, s}));
          e.add(pick(e.real({b, x, room, m}), e.ids({b, s, two}, 12), {x, room}, {b, s, m}));
          e.add(pick(e.real({x, m}), e.ids({b, s}, 4), x, {b, s, m}));
        },
};

constinit const Op unpick_op{
    .name = "unpick",
    .infer =
        [](const OpCall& c) {
          const UnpickAttrs& a = c.attrs<UnpickAttrs>();
          return picked("unpick", c, a.over, a.out, true);
        },
    .vjp =
        [](const Vjp& v) {
          const PickAttrs back{v.attrs<UnpickAttrs>().over, v.in[0].type().dims};
          return std::vector{v.builder.emit(pick_op, {v.grad[0], v.in[1]}, back), Tensor{}};
        },
    .spread = [](const OpCall& c) { return spread_of(c, c.attrs<UnpickAttrs>().over, {0}); },
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 6}, x{"x", 4}, two{"two", 2}, m{"m", 5}, room{"room", 3};
          e.add(unpick(e.real({b, s, two}), e.ids({b, s, two}, 4), x, {b, s, x}));
          e.add(unpick(e.real({b, s, m}), e.ids({b, s, two}, 12), {x, room}, {b, x, room, m}));
          e.add(unpick(e.real({two, s}), e.ids({s, two}, 4), x, {x}));
          e.add(unpick(e.real({b, s, m}), e.ids({b, s}, 4), x, {x, m}));
        },
    .scratch = [](const OpCall& c) -> std::size_t {  // f32 for what one row of bf16 may reach
      if (c.out().dtype != bf16) return 0;
      i64 n = 1;
      for (DimId d : without(c.out().dims, c.in(1).dims)) n *= c.graph.size(d);
      return std::size_t(n) * size_of(f32);
    },
    .accumulates = true,
};

}  // namespace stretto
