#include "stretto/ops/sqrt.h"

#include <cmath>

#include "stretto/ops/div.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor sqrt(Tensor x) { return builder_of("sqrt", {x}).emit(sqrt_op, {x}); }

constinit const Op sqrt_op{
    .name = "sqrt",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{0.5 * v.grad[0] / v.out[0]}; },
    .spread = rules::nothing,
    .cost = rules::streaming<3>,
    .examples =
        [](Examples& e) {
          e.add(sqrt(e.real({{"a", 3}, {"b", 4}}, 0.3, 3)));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return std::sqrt(x[0]); },
};

}  // namespace stretto
