// Exact training: the same bits for every number of ranks along the batch and every number of microbatches.
//
//   Leaves l = leaves_of(rows, ranks, training);       // how the step's rows are cut
//   schedule = on_leaves(schedule, l.per_microbatch);  // what kernels see at a time is one leaf, whatever the layout
//   add_levels(step, l.per_rank);                      // gradients of leaves are added in one balanced tree
//
// A leaf is Training::leaf rows. The batch has a power of two of them, every rank a run of neighbours; so the tree over
// the leaves of a rank is a lower part of the tree over all, and the sums over ranks are its upper part.
#pragma once
#include <string>
#include <vector>

#include "stretto/compile/compile.h"

namespace stretto {

struct Leaves {
  int per_rank = 1, per_microbatch = 1;
};
// Refused with the sizes that would do.
Leaves leaves_of(i64 rows, int ranks, const Training&);

// Every action becomes one per leaf of its microbatch.
Schedule on_leaves(Schedule, int leaves);

// Accumulators for the inner nodes of the tree, and the tasks that add them.
void add_levels(Step&, int leaves);

// The sum of all elements, of which there is a power of two, as a balanced tree over neighbours. `x` has dims of two
// elements each, see tree_dims.
Dims tree_dims(int elements);
Tensor tree_sum_of(Tensor x);

// What would make a number depend on how rows are shared. `alone`: the step without any layout; `batch`: the axes that
// rows lie on.
void check_exact(const Compiled&, const StepGraph& alone);
void check_exact_sums(const Compiled&, const AxisNames& batch);

}  // namespace stretto
