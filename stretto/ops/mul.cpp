#include "stretto/ops/mul.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor operator*(Tensor a, Tensor b) { return builder_of("mul", {a, b}).emit(mul_op, {a, b}); }
Tensor operator*(Tensor a, double b) { return a * rules::number("mul", b, a); }
Tensor operator*(double a, Tensor b) { return b * a; }

constinit const Op mul_op{
    .name = "mul",
    .infer = rules::pointwise,
    .vjp =
        [](const Vjp& v) {
          return std::vector{v.wanted[0] ? v.grad[0] * v.in[1] : Tensor{},
                             v.wanted[1] ? v.grad[0] * v.in[0] : Tensor{}};
        },
    .spread =
        [](const OpCall& c) {
          Spread s{.zeros = {0, 1}};
          if (c.in(1).dims.empty()) s.linear.push_back(0);
          if (c.in(0).dims.empty()) s.linear.push_back(1);
          return s;
        },
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          e.add(e.real({a, b}) * e.real({a, b}));
          e.add(e.real({b}) * e.real({a, b}));
          const Tensor x = e.real({a});
          e.add(x * x);
          e.add(-2.0 * x);
        },
    .in_place = {InPlace{0, 0}, InPlace{1, 0}},
    .pointwise = true,
    .value = [](const double* x) { return x[0] * x[1]; },
    .accumulates = true,
};

}  // namespace stretto
