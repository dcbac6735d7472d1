// The parts of a step outside the microbatch loop, as tasks: sums of outputs over ranks, loss scales, sums of gradients
// over pieces and ranks, norms, clipping, update.
#pragma once
#include "stretto/compile/compile.h"

namespace stretto {

// Appends the tasks to `step`; c.params, c.terms and c.scalars are complete but for what is added here.
void add_totals(Step& step, Compiled& c);
void add_scales(Step& step, Compiled& c, const std::vector<std::uint32_t>& scale_scalars);
void add_epilogue(Step& step, Compiled& c, int pipes);

}  // namespace stretto
