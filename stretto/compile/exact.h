// Exact training: the same bits for every number of ranks along the batch and every number of microbatches. All that
// takes is here: how rows are cut, one transformation of schedule and step, and what has to be refused.
//
//   const Leaves l = leaves_of(rows, ranks, training);            // how the step's rows are cut
//   ScheduledStep e = exact({schedule, step}, around, parallel);               // before they become a program
//
// A leaf is Training::leaf rows, and what kernels see at a time, whatever the layout. The batch has a power of two of
// them, every rank a run of neighbours; so the tree over the leaves of a rank is a lower part of the tree over all, and
// the sums over ranks are its upper part.
#pragma once
#include <vector>

#include "stretto/compile/epilogue.h"
#include "stretto/compile/placed.h"

namespace stretto {

struct Leaves {
  int per_rank = 1, per_microbatch = 1;
};
// What does not fit is refused, with the sizes that would.
Leaves leaves_of(i64 rows, int ranks, const Training&);
// The same for a model, traced with the whole batch as one microbatch. Refused if its rows depend on each other, since
// ranks that share the batch would have to talk within a microbatch.
Leaves leaves_of(const Traced& alone, const Parallel& complete, const Training&);

struct ScheduledStep {
  Schedule schedule;
  Step step;
};
// The step's tasks run on `around.microbatches` leaves. Every action becomes one per leaf of its microbatch; gradients
// of leaves, and outputs that are sums, are added in one balanced tree; sums over ranks come before sums over pieces.
// What would make a number depend on how rows are shared is refused.
ScheduledStep exact(ScheduledStep, const Surroundings& around, const Parallel& complete);

// Its parts.
Schedule on_leaves(Schedule, int leaves);  // per microbatch
Step add_levels(Step, int leaves);         // accumulators for the inner nodes of the tree, and the tasks that add them
std::vector<Fault> order_of_sums(const Surroundings& around, const Parallel& complete);

// The sum of all elements, of which there is a power of two, as a balanced tree over neighbours. `x` has dims of two
// elements each, see tree_dims.
Dims tree_dims(int elements);
Tensor tree_sum_of(Tensor x);

}  // namespace stretto
