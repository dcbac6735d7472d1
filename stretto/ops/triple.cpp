#include "stretto/ops/triple.h"

#include "stretto/ops/ops.h"
#include "stretto/ops/rules.h"

namespace stretto {
namespace {

DimSet space_of_triple(const OpCall& c) { return joined(joined(c.in(0).dims, c.in(1).dims), c.in(2).dims); }

Tensor emit_triple(Tensor a, Tensor b, Tensor c, const DimSet& out) {
  return builder_of("triple", {a, b, c}).emit(triple_op, {a, b, c}, TripleAttrs{out});
}

}  // namespace

Tensor triple(Tensor a, Tensor b, Tensor c, const Dims& out) {
  Builder& builder = builder_of("triple", {a, b, c});
  DimSet dims;
  for (const Dim& d : out) dims.push_back(builder.intern(d));
  return emit_triple(a, b, c, dims);
}

constinit const Op triple_op{
    .name = "triple",
    .infer =
        [](const OpCall& c) {
          const DimSet space = space_of_triple(c), &out = c.attrs<TripleAttrs>().out;
          for (int i = 0; i < 3; ++i)
            if (!is_float(c.in(i).dtype) || c.in(i).dtype != c.in(0).dtype)
              throw Error("triple", "{}, {} and {} are of different types, or integers", c.describe(0), c.describe(1),
                          c.describe(2))
                  .hint("cast them: cast(x, f32)");
          for (DimId d : out)
            if (!contains(space, d))
              throw Error("triple", "dim '{}' is asked for and none of {}, {} and {} has it", c.graph.dim(d).name,
                          c.describe(0), c.describe(1), c.describe(2))
                  .hint("ask for dims of the operands");
          return std::vector<Type>{{c.in(0).dtype, out}};
        },
    .vjp =
        [](const Vjp& v) {
          const Tensor a = v.in[0], b = v.in[1], c = v.in[2], g = v.grad[0];
          // What may be skipped stays in front.
          return std::vector{v.wanted[0] ? emit_triple(b, c, g, a.type().dims) : Tensor{},
                             v.wanted[1] ? emit_triple(a, c, g, b.type().dims) : Tensor{},
                             v.wanted[2] ? emit_triple(a, b, g, c.type().dims) : Tensor{}};
        },
    .spread =
        [](const OpCall& c) {
          Spread s{.linear = {0, 1, 2}};
          for (DimId d : without(space_of_triple(c), c.out().dims)) s.reduce.push_back({d, Reduce::sum});
          return s;
        },
    .cost =
        [](const OpCall& c) {
          // One of the first operand's elements in so many is not zero; which, nobody knows beforehand: as for dense.
          Cost cost = c.streaming(0);
          cost.flops = 2;
          for (DimId d : space_of_triple(c)) cost.flops *= c.graph.size(d);
          return cost;
        },
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 3}, x{"x", 4}, r{"r", 2}, m{"m", 5};
          e.add(triple(e.real({b, s, x, r}), e.real({b, s, x}), e.real({b, x, r, m}), {b, s, m}));
          e.add(triple(e.real({b, s, x, r}), e.real({b, s, m}), e.real({b, x, r, m}), {b, s, x}));
          e.add(triple(e.real({b, s, x, r}), e.real({b, s, x}), e.real({b, s, m}), {m, b, x, r}));
          e.add(triple(e.real({s}), e.real({s, m}), e.real({m}), {m}));
        },
};

}  // namespace stretto
