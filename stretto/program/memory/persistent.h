// What outlives a task: parameters, accumulators, state, the batch, results. Each actor has memory for what its tasks
// touch.
//
//   place_persistent(program, actor);
//   Slot s = persistent_slot(program, program.actors[actor], ParamId(3));
#pragma once
#include "stretto/program/program.h"

namespace stretto {

// Of an actor whose code is complete. Parameters that have their place already keep it.
void place_persistent(Program&, ActorId);

// What a task's binding means for a run: a weight gradient goes to the accumulator of the run's pipe or level.
Binding bound(const Program&, const Run&, const Binding&);

// A gradient of another actor's piece, which comes as a message when backward is over or nearly so: it lies among the
// activations, in the memory of those that are no longer needed (room.h).
bool visits(const Program&, ActorId, AccumulatorId);
bool visits(const Program&, ActorId, const Binding&);

// Not of values and of what visits, which are placed by liveness.
Slot persistent_slot(const Program&, const ActorProgram&, const Binding&, MicrobatchId = MicrobatchId(0));

}  // namespace stretto
