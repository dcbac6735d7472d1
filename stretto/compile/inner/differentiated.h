// The second arrow: a traced step -> the same with the gradients of its loss terms, one per parameter and piece that
// uses it.
//
//   StepGraph step = differentiated(trace_step(model, {}));
//   for (const StepGraph::Grad& g : step.gradients) fmt::print("{}\n", step.graph.str(g.value));
#pragma once
#include "stretto/compile/traced.h"

namespace stretto {

// A state has what it has seen in place of a gradient. Loss terms are weighted by their scales, which the prologue
// makes. A trained parameter that does not reach the loss is refused.
StepGraph differentiated(const Traced&);

}  // namespace stretto
