#include "stretto/ops/cos.h"

#include <cmath>

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/neg.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/sin.h"

namespace stretto {

Tensor cos(Tensor x) { return builder_of("cos", {x}).emit(cos_op, {x}); }

constinit const Op cos_op{
    .name = "cos",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{-(v.grad[0] * sin(v.in[0]))}; },
    .spread = rules::nothing,
    .cost = rules::streaming<40>,
    .examples =
        [](Examples& e) {
          e.add(cos(e.real({{"a", 3}, {"b", 4}}, -3, 3)));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return std::cos(x[0]); },
};

}  // namespace stretto
