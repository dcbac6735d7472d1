#include "stretto/ops/stochastic_round.h"

#include "stretto/ops/index.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

// Which block of a split dim this rank has: the one element of a dim with the same axes.
Tensor block_number(Builder& b, const Dim& split, const Mesh& mesh) {
  Dim own{.name = "@", .size = 1, .logical = 1, .axes = split.axes};
  for (const std::string& axis : split.axes) own.name += axis, own.logical *= mesh.extent(axis);
  return index(iota(b, own), own, 0);
}

}  // namespace

Tensor stochastic_round(Tensor x, StochasticRoundAttrs attrs) {
  return builder_of("stochastic_round", {x}).emit(stochastic_round_op, {x}, std::move(attrs));
}

Tensor stochastic_round(Tensor x, StochasticRoundAttrs attrs, const Dims& box, const Mesh& mesh) {
  Builder& b = builder_of("stochastic_round", {x});
  attrs.box = b.intern(box);
  std::vector<Tensor> operands{x};
  for (std::size_t d = 0; d < box.size(); ++d) {
    if (box[d].axes.empty()) continue;
    attrs.split.push_back(i64(d));
    operands.push_back(block_number(b, box[d], mesh));
  }
  return b.emit(stochastic_round_op, operands, std::move(attrs));
}

constinit const Op stochastic_round_op{
    .name = "stochastic_round",
    .infer =
        [](const OpCall& c) {
          const StochasticRoundAttrs& a = c.attrs<StochasticRoundAttrs>();
          if (!is_float(c.in(0).dtype))
            throw Error("stochastic_round", "{} has no fractions", c.describe(0)).hint("use cast");
          if (!a.box.empty() && c.in(0).dims.size() != 1)
            throw Error("stochastic_round", "{} is no row of numbers", c.describe(0)).hint("give it one dim");
          return std::vector<Type>{{bf16, c.in(0).dims}};
        },
    .spread =
        [](const OpCall& c) {
          const DimSet& box = c.attrs<StochasticRoundAttrs>().box;
          return Spread{.serial = box, .extra = box};
        },
    .cost = rules::streaming<20>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 5}, c{"c", 7}, flat{"flat", 40}, rows{"rows", 4}, columns{"columns", 10};
          e.add(stochastic_round(e.real({a, b, c}), {.name = "first"}));
          e.add(stochastic_round(e.real({}), {.name = "second", .which = 3}));
          const DimSet box = e.builder.intern(Dims{rows, columns});
          e.add(stochastic_round(e.real({flat}), {.name = "third", .box = box}));
          e.add(e.builder.emit(stochastic_round_op, {e.real({flat}), e.ids({}, 3)},
                               StochasticRoundAttrs{.name = "fourth", .which = 1, .box = box, .split = {1}}));
        },
    .key =
        [](const Attrs& a) {
          const StochasticRoundAttrs& s = a.as<StochasticRoundAttrs>();
          return RandomKey{s.name, s.key};
        },
    .rekeyed =
        [](const Attrs& a, RandomKey k) {
          StochasticRoundAttrs s = a.as<StochasticRoundAttrs>();
          s.name = std::move(k.name);
          s.key = k.number;
          return Attrs(s);
        },
    .no_gradient = true,
};

}  // namespace stretto
