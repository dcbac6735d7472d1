// Before the pass: what no output needs is left out, equal renames become one, and ops that need a dim whole which the
// layout splits are replaced by what they are made of.
//
//   std::vector<Fault> faults;
//   const StepGraph ready = take_apart(step, resolve(step.graph.dims, mesh, layout, faults), faults);
#pragma once
#include <vector>

#include "stretto/ir/step_graph.h"
#include "stretto/shard/inner/axes.h"

namespace stretto {

// Per node: some output or gradient depends on it.
IdVector<NodeId, bool> needed_nodes(const StepGraph&);

// An op that has no decomposition, and two dims of one op on one axis, are reported in `faults`.
StepGraph take_apart(const StepGraph&, const DimAxes&, std::vector<Fault>& faults);

}  // namespace stretto
