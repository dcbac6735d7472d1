// Exact training: the same bits for every number of ranks along the batch and every number of microbatches. All that
// takes is here: how rows are cut, one transformation of schedule and step, and what has to be refused. Of a run that
// is not exact both functions give back what they are given.
//
//   Traced traced = trace_step(model, exact_rows(model, options, parallel, training));
//   ScheduledStep s = exact({schedule, step, shared}, around, parallel, training);     // before it becomes a program
//
// A leaf is Training::leaf rows, and what kernels see at a time, whatever the layout. The batch has a power of two of
// them, every rank a run of neighbours; so the tree over the leaves of a rank is a lower part of the tree over all, and
// the sums over ranks are its upper part.
#pragma once
#include <vector>

#include "stretto/compile/inner/epilogue.h"
#include "stretto/compile/placed.h"

namespace stretto {

// How the step is traced: every leaf of a rank is a microbatch. Traces the whole batch once, since the number of leaves
// depends on the layout, and that on the model's dims. Refused if rows of the model depend on each other, because ranks
// that share the batch would have to talk within a microbatch.
TraceOptions exact_rows(const Model&, TraceOptions, const Parallel&, const Training&);
// How many leaves a rank has. What does not fit is refused, with the sizes that would.
int leaves_of(i64 rows, int ranks, const Training&);

struct ScheduledStep {
  Schedule schedule;
  Step step;
  SharedRows shared = {};
};
// The step's tasks run on `around.microbatches` leaves, and a rank's are neighbours. Every action becomes one per leaf
// of its microbatch; gradients of leaves, and outputs that are sums, are added in one balanced tree; sums over ranks
// come before sums over pieces. What would make a number depend on how rows are shared is refused.
ScheduledStep exact(ScheduledStep, const Surroundings& around, const Parallel& complete, const Training&);

// Its parts.
Schedule on_leaves(Schedule, int leaves);  // per microbatch
Step add_levels(Step, int leaves);         // accumulators for the inner nodes of the tree, and the tasks that add them
std::vector<Fault> order_of_sums(const Surroundings& around, const Parallel& complete);

// The sum of all elements, of which there is a power of two, as a balanced tree over neighbours. `x` has dims of two
// elements each, see tree_dims.
Dims tree_dims(int elements);
Tensor tree_sum_of(Tensor x);

}  // namespace stretto
