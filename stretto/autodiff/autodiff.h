// Reverse mode on the logical graph, before sharding, so that gradients never depend on the layout.
//
//   std::vector<Gradient> g = differentiate(builder, {{loss, seed}}, params);
//
// Backward nodes belong to the piece of the forward node they differentiate. Contributions to a value used several
// times are added in one fixed order (users from last to first); the sum sits with the value's producer. A value of
// `wrt` gets one gradient per piece that uses it: pieces may end up on different actors, and each keeps its own
// accumulator.
#pragma once
#include <span>
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

struct Root {
  Tensor value, seed;  // seed has the value's type, or fewer dims: it is broadcast
};
struct Gradient {
  Tensor of;
  std::uint16_t piece = 0;
  Tensor grad;
};

// In the order of `wrt`, then of pieces. A value that no root depends on has no entry.
std::vector<Gradient> differentiate(Builder&, std::span<const Root> roots, std::span<const Tensor> wrt);

}  // namespace stretto
