#include "stretto/ops/tanh.h"

#include <cmath>

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/square.h"
#include "stretto/ops/sub.h"

namespace stretto {

Tensor tanh(Tensor x) { return builder_of("tanh", {x}).emit(tanh_op, {x}); }

constinit const Op tanh_op{
    .name = "tanh",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{v.grad[0] * (1.0 - square(v.out[0]))}; },
    .spread = rules::nothing,
    .cost = rules::streaming<12>,
    .examples =
        [](Examples& e) {
          e.add(tanh(e.real({{"a", 3}, {"b", 4}}, -3, 3)));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return std::tanh(x[0]); },
};

}  // namespace stretto
