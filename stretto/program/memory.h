// The memory plan: persistent arenas, and activations at fixed offsets by liveness.
//
//   plan_memory(program);      // fills in slots, arena sizes and addresses
#pragma once
#include "stretto/program/program.h"

namespace stretto {

// For all actors, whose code must be complete and its order settled (order.h). With `params_of`, parameters lie where
// that program has them; with `undo`, there is memory for what parameters and state were before each of two steps.
void plan_memory(Program&, const Program* params_of = nullptr, bool undo = false);

}  // namespace stretto
