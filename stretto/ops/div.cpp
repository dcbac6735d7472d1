#include "stretto/ops/div.h"

#include "stretto/ops/add.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/neg.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor operator/(Tensor a, Tensor b) { return builder_of("div", {a, b}).emit(div_op, {a, b}); }
Tensor operator/(Tensor a, double b) { return a / rules::number("div", b, a); }
Tensor operator/(double a, Tensor b) { return rules::number("div", a, b) / b; }

constinit const Op div_op{
    .name = "div",
    .infer = rules::float_pointwise,
    .vjp =
        [](const Vjp& v) {
          const Tensor over = v.grad[0] / v.in[1];
          return std::vector{over, v.wanted[1] ? -(over * v.out[0]) : Tensor{}};
        },
    .spread = [](const OpCall& c) { return c.in(1).dims.empty() ? rules::linear(c) : Spread{}; },
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          e.add(e.real({a, b}) / e.real({a, b}, 0.5, 2));
          e.add(e.real({a, b}) / e.real({b}, -2, -0.5));
          e.add(e.real({b}) / e.real({a, b}, 0.5, 2));
          const Tensor x = e.real({a}, 0.5, 2);
          e.add(x / (x + x));
          e.add(x / 3.0);
          e.add(2.0 / x);
        },
    .in_place = {InPlace{0, 0}, InPlace{1, 0}},
    .pointwise = true,
    .value = [](const double* x) { return x[0] / x[1]; },
};

}  // namespace stretto
