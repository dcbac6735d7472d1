#include "stretto/ops/sigmoid.h"

#include <cmath>

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/sub.h"

namespace stretto {

Tensor sigmoid(Tensor x) { return builder_of("sigmoid", {x}).emit(sigmoid_op, {x}); }

constinit const Op sigmoid_op{
    .name = "sigmoid",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{v.grad[0] * (v.out[0] * (1.0 - v.out[0]))}; },
    .spread = rules::nothing,
    .cost = rules::streaming<12>,
    .examples =
        [](Examples& e) {
          e.add(sigmoid(e.real({{"a", 3}, {"b", 4}}, -3, 3)));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return 1 / (1 + std::exp(-x[0])); },
};

}  // namespace stretto
