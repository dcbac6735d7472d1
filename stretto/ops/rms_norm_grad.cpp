#include "stretto/ops/rms_norm_grad.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"

namespace stretto {

Tensor rms_norm_grad(Tensor x, Tensor gain, Tensor rstd, Tensor g, DimId over) {
  return x.builder->emit(rms_norm_grad_op, {x, gain, rstd, g}, NormGradAttrs{over});
}

constinit const Op rms_norm_grad_op{
    .name = "rms_norm_grad",
    .infer =
        [](const OpCall& c) {
          const Type sums{wide(c.in(1).dtype), c.in(1).dims};
          return std::vector<Type>{c.in(0), sums};
        },
    .spread = norm_grad_spread<3>,
    .cost = rules::streaming<10>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 2}, m{"m", 40};
          const auto one = [&](Dims rows, Dims all, Dim over) {
            const Tensor dx = rms_norm_grad(e.real(all), e.real({over}), e.real_wide(rows, 0.5, 2), e.real(all),
                                            e.builder.intern(over));
            e.add({dx, e.builder.result(dx, 1)});
          };
          one({a}, {a, m}, m);
          one({a, b}, {a, m, b}, m);
          one({}, {m}, m);
        },
    .decompose =
        [](const OpCall& c, std::span<const Tensor> in) {
          const DimSet over{c.attrs<NormGradAttrs>().over}, rows = without(c.in(0).dims, over);
          const double n = c.graph.dim(over[0]).valid();
          const Tensor x = in[0] * in[2], g = in[3] * in[1];
          return std::vector{in[2] * (g - x * (sum_over(g * x, over) * (1 / n))), sum_over(in[3] * x, rows)};
        },
    .in_place = {InPlace{3, 0}, InPlace{0, 0}},
    .accumulates = true,
    .no_gradient = true,
};

}  // namespace stretto
