#include "stretto/ops/sign.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor sign(Tensor x) { return builder_of("sign", {x}).emit(sign_op, {x}); }

constinit const Op sign_op{
    .name = "sign",
    .infer = rules::float_unary,
    .spread = rules::nothing,
    .cost = rules::streaming<2>,
    .examples =
        [](Examples& e) {
          e.add(sign(e.real({{"a", 3}, {"b", 4}})));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return double((x[0] > 0) - (x[0] < 0)); },
    .no_gradient = true,
};

}  // namespace stretto
