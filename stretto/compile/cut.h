// The fourth arrow: a rank's graph -> its tasks, and the stage of every piece.
//
//   Cut c = cut_step(placed.step, schedule, parallel, {.states = 2, .microbatches = 8});
//   fmt::print("{} tasks in {} stages\n", c.step.tasks.size(), c.stage_of.back() + 1);
//   Step s = with_accumulators(std::move(c.step), schedule.pipes(), placed.sharded.get());
#pragma once
#include <vector>

#include "stretto/compile/training.h"
#include "stretto/ir/step_graph.h"
#include "stretto/shard/shard.h"
#include "stretto/stage/task.h"

namespace stretto {

struct Cut {
  Step step;
  std::vector<int> stage_of;  // per piece
};

// What the update adds to the work of the pieces: it is done once per step.
struct UpdateWork {
  int states = 0;  // of the optimizer
  int microbatches = 1;
};

// Stages as they are given, or such that the busiest actor's load is as small as possible. Cuts come before recompute:
// what a stage keeps depends on where it begins.
Cut cut_step(const StepGraph&, const Schedule&, const Parallel&, const UpdateWork& = {});

// Stages ascend by at most one from piece to piece and are as many as the schedule has; the step is sound.
std::vector<Fault> verify(const Cut&, const Schedule&);

// Every pipe accumulates for itself. Over ranks, a parameter's only accumulator is added up in place where that is all
// it takes, and norm and update see what a rank has of it. `sharded`: none on one rank.
Step with_accumulators(Step, int pipes, const Sharded* sharded);

}  // namespace stretto
