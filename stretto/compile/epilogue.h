// The parts of a step outside the microbatch loop, as tasks: loss scales, sums of tied gradients, norms, clipping,
// update.
#pragma once
#include "stretto/compile/compile.h"

namespace stretto {

// Appends the tasks to `step`; c.params, c.terms and c.scalars are complete but for what is added here.
void add_scales(Step& step, Compiled& c, const std::vector<std::uint32_t>& scale_scalars);
void add_epilogue(Step& step, Compiled& c, int pipes);

}  // namespace stretto
