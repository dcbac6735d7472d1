#include "stretto/ops/sub.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/neg.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor operator-(Tensor a, Tensor b) { return builder_of("sub", {a, b}).emit(sub_op, {a, b}); }
Tensor operator-(Tensor a, double b) { return a - rules::number("sub", b, a); }
Tensor operator-(double a, Tensor b) { return rules::number("sub", a, b) - b; }

constinit const Op sub_op{
    .name = "sub",
    .infer = rules::pointwise,
    .vjp =
        [](const Vjp& v) {
          return std::vector{v.grad[0], v.wanted[1] ? -v.grad[0] : Tensor{}};
        },
    .spread = rules::linear_together,
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          e.add(e.real({a, b}) - e.real({a, b}));
          e.add(e.real({b}) - e.real({a, b}));
          const Tensor x = e.real({a});
          e.add(x - x * 3.0);
          e.add(1.0 - x);
          e.add(x - 1.0);
        },
    .in_place = {InPlace{0, 0}, InPlace{1, 0}},
    .pointwise = true,
    .value = [](const double* x) { return x[0] - x[1]; },
};

}  // namespace stretto
