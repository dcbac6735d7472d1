#include "stretto/ops/log.h"

#include <cmath>

#include "stretto/ops/div.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor log(Tensor x) { return builder_of("log", {x}).emit(log_op, {x}); }

constinit const Op log_op{
    .name = "log",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{v.grad[0] / v.in[0]}; },
    .spread = rules::nothing,
    .cost = rules::streaming<10>,
    .examples =
        [](Examples& e) {
          e.add(log(e.real({{"a", 3}, {"b", 4}}, 0.2, 3)));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return std::log(x[0]); },
};

}  // namespace stretto
