#include "stretto/ops/relu.h"

#include "stretto/ops/compare.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/where.h"

namespace stretto {

Tensor relu(Tensor x) { return builder_of("relu", {x}).emit(relu_op, {x}); }

constinit const Op relu_op{
    .name = "relu",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{where(greater(v.out[0], 0), v.grad[0], 0)}; },
    .spread = rules::zero_of_zero<0>,
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          e.add(relu(e.real({{"a", 3}, {"b", 4}})));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return x[0] > 0 ? x[0] : 0; },
};

}  // namespace stretto
