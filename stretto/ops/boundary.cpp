#include "stretto/ops/boundary.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor boundary(Tensor x) {
  Builder& b = builder_of("boundary", {x});
  const Tensor y = b.emit(boundary_op, {x});
  if (!b.force_piece) b.graph.nodes.back().piece += 1;
  return y;
}

constinit const Op boundary_op{
    .name = "boundary",
    .infer = rules::same_as_first,
    .vjp = rules::pass_gradient,
    .spread = rules::nothing,  // not linear: a pending sum is carried out before the message
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          e.add(boundary(e.real({{"a", 3}, {"b", 4}})));
        },
    .view = [](const OpCall& c, int) { return rules::in_order(c.in(0).dims); },
    .starts_piece = true,
};

}  // namespace stretto
