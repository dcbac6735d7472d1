// The fourth arrow: a rank's graph -> its tasks, and the stage of every piece.
//
//   Cut c = cut_step(placed.step, schedule, parallel, 2);
//   fmt::print("{} tasks in {} stages\n", c.step.tasks.size(), c.stage_of.back().value + 1);
//   Step s = with_accumulators(std::move(c.step), schedule.pipes(), placed.sharded.get());
#pragma once
#include <vector>

#include "stretto/compile/training.h"
#include "stretto/ir/step_graph.h"
#include "stretto/shard/shard.h"
#include "stretto/step/step.h"

namespace stretto {

struct Cut {
  Step step;
  IdVector<PieceId, StageId> stage_of;
};

int pieces_of(const Graph&);

// Refuses times of something else than this graph of a rank.
void check_measured(const Graph&, const MeasuredTimes&);

// Stages as given, or those with which a step is shortest in simulation. Cuts come before recompute: what a
// stage keeps depends on where it begins. `states`: how many the optimizer keeps per parameter, for its update's time.
Cut cut_step(const StepGraph&, const Schedule&, const Parallel&, int states = 0);

// Stages ascend by at most one from piece to piece and are as many as the schedule has; the step is sound.
std::vector<Fault> verify(const Cut&, const Schedule&);

// Every pipe accumulates for itself. Where a parameter's only accumulator merely has to be added up over ranks, that is
// done in place. Norm and update see what a rank has of a parameter. `sharded`: none on one rank.
Step with_accumulators(Step, int pipes, const Sharded* sharded);

}  // namespace stretto
