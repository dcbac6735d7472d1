#include "stretto/ops/add.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor operator+(Tensor a, Tensor b) { return builder_of("add", {a, b}).emit(add_op, {a, b}); }
Tensor operator+(Tensor a, double b) { return a + rules::number("add", b, a); }
Tensor operator+(double a, Tensor b) { return b + a; }

constinit const Op add_op{
    .name = "add",
    .infer = rules::pointwise,
    .vjp =
        [](const Vjp& v) {
          return std::vector{v.grad[0], v.grad[0]};
        },
    .spread = rules::linear_together,
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          e.add(e.real({a, b}) + e.real({a, b}));
          e.add(e.real({a, b}) + e.real({b}));
          e.add(e.real({a, b}) + e.real({b, a}));
          e.add(e.real({}) + e.real({a}));
          const Tensor x = e.real({a});
          e.add(x + x);
          e.add(x + 2.5);
        },
    .in_place = {InPlace{0, 0}, InPlace{1, 0}},
    .pointwise = true,
    .value = [](const double* x) { return x[0] + x[1]; },
    .accumulates = true,
};

}  // namespace stretto
