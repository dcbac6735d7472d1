#include "stretto/ops/neg.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor operator-(Tensor x) { return builder_of("neg", {x}).emit(neg_op, {x}); }

constinit const Op neg_op{
    .name = "neg",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{-v.grad[0]}; },
    .spread = rules::linear,
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          e.add(-e.real({{"a", 3}, {"b", 4}}));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return -x[0]; },
};

}  // namespace stretto
