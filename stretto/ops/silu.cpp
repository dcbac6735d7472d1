#include "stretto/ops/silu.h"

#include <cmath>

#include "stretto/ops/add.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/sigmoid.h"
#include "stretto/ops/sub.h"

namespace stretto {

Tensor silu(Tensor x) { return builder_of("silu", {x}).emit(silu_op, {x}); }
Tensor silu_grad(Tensor x, Tensor g) { return builder_of("silu_grad", {x, g}).emit(silu_grad_op, {x, g}); }

constinit const Op silu_op{
    .name = "silu",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{silu_grad(v.in[0], v.grad[0])}; },
    .spread = rules::zero_of_zero<0>,
    .cost = rules::streaming<13>,
    .examples =
        [](Examples& e) {
          e.add(silu(e.real({{"a", 3}, {"b", 4}}, -3, 3)));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return x[0] / (1 + std::exp(-x[0])); },
};

constinit const Op silu_grad_op{
    .name = "silu_grad",
    .infer = rules::float_pointwise,
    .vjp =
        [](const Vjp& v) {
          Tensor dx;
          if (v.wanted[0]) {  // silu'' = s (1 - s) (2 + x (1 - 2s))
            const Tensor x = v.in[0], s = sigmoid(x);
            dx = v.grad[0] * v.in[1] * (s * (1.0 - s) * (2.0 + x * (1.0 - 2.0 * s)));
          }
          return std::vector{dx, v.wanted[1] ? silu_grad(v.in[0], v.grad[0]) : Tensor{}};
        },
    .spread = rules::zero_of_zero<1>,
    .cost = rules::streaming<16>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          e.add(silu_grad(e.real({a, b}, -3, 3), e.real({a, b})));
        },
    .in_place = {InPlace{0, 0}, InPlace{1, 0}},
    .pointwise = true,
    .value =
        [](const double* x) {
          const double s = 1 / (1 + std::exp(-x[0]));
          return x[1] * (s + x[0] * s * (1 - s));
        },
};

}  // namespace stretto
