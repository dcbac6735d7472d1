#include "stretto/ops/erf.h"

#include <cmath>
#include <numbers>

#include "stretto/ops/exp.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/neg.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/square.h"

namespace stretto {

Tensor erf(Tensor x) { return builder_of("erf", {x}).emit(erf_op, {x}); }

constinit const Op erf_op{
    .name = "erf",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{(2 * std::numbers::inv_sqrtpi) * v.grad[0] * exp(-square(v.in[0]))}; },
    .spread = rules::zero_of_zero<0>,
    .cost = rules::streaming<30>,
    .examples =
        [](Examples& e) {
          e.add(erf(e.real({{"a", 3}, {"b", 4}}, -3, 3)));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return std::erf(x[0]); },
};

}  // namespace stretto
