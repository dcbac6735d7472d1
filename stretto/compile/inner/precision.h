// The arrow after differentiation: where a step in bf16 is computed and kept in f32.
//
//   StepGraph graph = in_precision(differentiated(traced));        // the same graph when nothing in it is bf16
//
// Pointwise ops on bf16 are computed in f32. What one of them makes for another of the same piece and phase is not
// rounded in between, whether or not they become one kernel later. Everybody else reads it rounded once. Gradients of
// parameters, and outputs, are f32: sums that lead to them keep the type in which they were added up.
#pragma once
#include "stretto/ir/step_graph.h"

namespace stretto {

StepGraph in_precision(const StepGraph&);

}  // namespace stretto
