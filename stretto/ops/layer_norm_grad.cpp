#include "stretto/ops/layer_norm_grad.h"

#include "stretto/ops/add.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"

namespace stretto {

Tensor layer_norm_grad(Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor g, DimId over) {
  return x.builder->emit(layer_norm_grad_op, {x, gain, mean, rstd, g}, NormGradAttrs{over});
}

constinit const Op layer_norm_grad_op{
    .name = "layer_norm_grad",
    .infer =
        [](const OpCall& c) {
          const Type sums{wide(c.in(1).dtype), c.in(1).dims};
          return std::vector<Type>{c.in(0), sums, sums};
        },
    .spread = norm_grad_spread<4>,
    .cost = rules::streaming<14>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 2}, m{"m", 40};
          const auto one = [&](Dims rows, Dims all, Dim over) {
            const Tensor dx = layer_norm_grad(e.real(all), e.real({over}), e.real_wide(rows), e.real_wide(rows, 0.5, 2),
                                              e.real(all), e.builder.intern(over));
            e.add({dx, e.builder.result(dx, 1), e.builder.result(dx, 2)});
          };
          one({a}, {a, m}, m);
          one({a, b}, {a, m, b}, m);
          one({}, {m}, m);
        },
    .decompose =
        [](const OpCall& c, std::span<const Tensor> in) {
          const DimSet over{c.attrs<NormGradAttrs>().over}, rows = without(c.in(0).dims, over);
          const double n = c.graph.dim(over[0]).valid();
          const Tensor x = (in[0] - in[2]) * in[3], g = in[4] * in[1];
          const Tensor dx = in[3] * (g - (sum_over(g, over) * (1 / n) + x * (sum_over(g * x, over) * (1 / n))));
          return std::vector{dx, sum_over(in[4] * x, rows), sum_over(in[4], rows)};
        },
    .in_place = {InPlace{4, 0}, InPlace{0, 0}},
    .accumulates = true,
    .no_gradient = true,
};

}  // namespace stretto
