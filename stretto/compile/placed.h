// The third arrow: a step's graph and a layout -> the graph of one rank.
//
//   const Parallel parallel = complete({.names = {.data = 2}}, traced);   // one mesh, one layout, one storage
//   const Placed placed = place(differentiated(traced), parallel);
//   Step tasks = split(placed.step);
#pragma once
#include <memory>

#include "stretto/compile/traced.h"
#include "stretto/compile/training.h"
#include "stretto/shard/shard.h"

namespace stretto {

struct Placed {
  StepGraph step;                          // of one rank
  std::shared_ptr<const Sharded> sharded;  // how the ranks of an actor share it; none: an actor is one rank
};

// The short names, and what is given beside them, as one mesh, one layout and one storage.
Parallel complete(Parallel, const Traced&);

// Which ranks share experts, by name or by a layout of one's own, and how rows get to them. The Parallel need not be
// complete. When nobody asked for either way, rows are gathered where an exchange would be refused.
int expert_ranks(const Parallel&);
ExpertRows expert_rows(const Parallel&, const Training&);

// The axes that rows lie on, of a complete layout, and how many ranks there are along them.
AxisNames axes_of_rows(const Parallel&, const std::string& batch);
int ranks_along(const Mesh&, const AxisNames& axes);

// Refuses a batch of which some microbatch cannot be shared equally among the ranks.
void check_rows(const Traced&, const Parallel&, int microbatches);

// Where the ranks of a complete Parallel lie: as it says, or as links within actors and between them say.
Cluster cluster_of(const Parallel&);

// If the pipeline's axis is the only one, the graph stays as it is.
Placed place(StepGraph, const Parallel&);

}  // namespace stretto
