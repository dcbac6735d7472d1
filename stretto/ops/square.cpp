#include "stretto/ops/square.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor square(Tensor x) { return builder_of("square", {x}).emit(square_op, {x}); }

constinit const Op square_op{
    .name = "square",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{2.0 * v.grad[0] * v.in[0]}; },
    .spread = rules::nothing,
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          e.add(square(e.real({{"a", 3}, {"b", 4}})));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return x[0] * x[0]; },
};

}  // namespace stretto
