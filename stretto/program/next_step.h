// What takes the place of "all actors start a step together" when an actor goes on with the next step while others are
// still in this one.
//
//   for (const NextStepWait& w : next_step(program).waits[actor])
//     wait_for(w.actor, w.until);         // before instruction w.at of step n + 1: of step n
//
// The proofs of a program (order.h, races.h) are of one step. They use that nobody writes into an actor's memory before
// it has begun the step. A message whose writer has heard of the receiver in this step keeps to that by itself. Before
// any other is written, the writer waits until the receiver has passed, in the step before, the last instruction that
// touches the memory of the message: its own Receive is one of them, so no message is announced before the one of the
// step before is taken. Then all that the receiver's step n does to that memory is over, and within step n + 1 the
// proofs hold.
//
// Nothing can wait in a circle: an actor in step n waits for events of step n that come earlier in the one play of the
// program, or for events of step n - 1.
#pragma once
#include "stretto/program/program.h"

namespace stretto {

struct NextStepWait {
  InstructionId at;     // before this one ...
  ActorId actor;        // ... until this actor ...
  InstructionId until;  // ... has done, in the step before, all before this one
};
struct NextStep {
  IdVector<ActorId, std::vector<NextStepWait>> waits;  // in order; without those that an earlier one implies
  IdVector<ActorId, std::vector<InstructionId>>
      told;  // at which of its instructions somebody may wait for it, ascending
};
NextStep next_step(const Program&);

// Two steps as one program, the second with microbatches of its own, in which every such wait is an empty message: the
// proofs of one step then cover what two of them do to each other.
Program two_steps(const Program&, const NextStep&);

}  // namespace stretto
