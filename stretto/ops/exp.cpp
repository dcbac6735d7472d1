#include "stretto/ops/exp.h"

#include <cmath>

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor exp(Tensor x) { return builder_of("exp", {x}).emit(exp_op, {x}); }

constinit const Op exp_op{
    .name = "exp",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{v.grad[0] * v.out[0]}; },
    .spread = rules::nothing,
    .cost = rules::streaming<10>,
    .examples =
        [](Examples& e) {
          e.add(exp(e.real({{"a", 3}, {"b", 4}})));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return std::exp(x[0]); },
};

}  // namespace stretto
