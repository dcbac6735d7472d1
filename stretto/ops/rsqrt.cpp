#include "stretto/ops/rsqrt.h"

#include <cmath>

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/square.h"

namespace stretto {

Tensor rsqrt(Tensor x) { return builder_of("rsqrt", {x}).emit(rsqrt_op, {x}); }

constinit const Op rsqrt_op{
    .name = "rsqrt",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{-0.5 * v.grad[0] * (v.out[0] * square(v.out[0]))}; },
    .spread = rules::nothing,
    .cost = rules::streaming<4>,
    .examples =
        [](Examples& e) {
          e.add(rsqrt(e.real({{"a", 3}, {"b", 4}}, 0.3, 3)));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return 1 / std::sqrt(x[0]); },
};

}  // namespace stretto
