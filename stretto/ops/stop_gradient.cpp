#include "stretto/ops/stop_gradient.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor stop_gradient(Tensor x) { return builder_of("stop_gradient", {x}).emit(stop_gradient_op, {x}); }

constinit const Op stop_gradient_op{
    .name = "stop_gradient",
    .infer = rules::same_as_first,
    .spread = rules::linear,
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          e.add(stop_gradient(e.real({{"a", 3}, {"b", 4}})));
        },
    .view = [](const OpCall& c, int) { return rules::in_order(c.in(0).dims); },
    .no_gradient = true,
};

}  // namespace stretto
