// AdamW's update as one loop. Tiles take one step of a group after the other, and an update has 17: of these each
// element should take as long as its way from memory and back. The group is known by its steps; the numbers are those
// of the tiles.
//
//   if (const std::optional<AdamwUpdate> u = adamw_update(group, plan)) run_adamw(*u, args);
#pragma once
#include <optional>

#include "stretto/kernels/cpu/pointwise/tile_plan.h"
#include "stretto/ops/fused.h"

namespace stretto {

// A number that is the same for all elements: an operand's, or one that the group has.
struct AdamwNumber {
  std::optional<int> operand = {};
  double value = 0;
};

struct AdamwUpdate {
  i64 elements = 0;
  int param = 0, grad = 0, m = 0, v = 0, finite = 0;  // operands; finite: else all stays as it was
  std::optional<int> clip = {};                       // operand: times the gradient
  AdamwNumber kept{.value = 1};                       // of the parameter, after its decay
  AdamwNumber beta1, beta1_rest, beta2, beta2_rest, root, eps, size;
  int new_param = 0, new_m = 0, new_v = 0;  // results
  std::optional<int> rounded = {};          // result: the parameter in bf16
};

// None: the group is another one, or does not lie in memory as one row.
std::optional<AdamwUpdate> adamw_update(const FusedAttrs&, const TilePlan&);

void run_adamw(const AdamwUpdate&, const Args&);

}  // namespace stretto
