// What a run cannot have together, e.g. gradients added up in bf16 by exact training.
//
//   check_together(traced, &optimizer, training, parallel);
#pragma once
#include "stretto/compile/traced.h"
#include "stretto/compile/training.h"
#include "stretto/optim/optimizer.h"

namespace stretto {

// Throws an Error that names the settings. `optimizer`: none when only forward is compiled.
void check_together(const Traced&, const Optimizer*, const Training&, const Parallel& complete);

}  // namespace stretto
