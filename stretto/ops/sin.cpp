#include "stretto/ops/sin.h"

#include <cmath>

#include "stretto/ops/cos.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor sin(Tensor x) { return builder_of("sin", {x}).emit(sin_op, {x}); }

constinit const Op sin_op{
    .name = "sin",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{v.grad[0] * cos(v.in[0])}; },
    .spread = rules::zero_of_zero<0>,
    .cost = rules::streaming<40>,
    .examples =
        [](Examples& e) {
          e.add(sin(e.real({{"a", 3}, {"b", 4}}, -3, 3)));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return std::sin(x[0]); },
};

}  // namespace stretto
