// Where parameters that are cut over ranks are gathered: each piece's before its first use, while the piece before it
// works, so that the parameters of two pieces are whole at a time.
//
//   place_gathers(program, actor, Reshard::microbatch);
#pragma once
#include "stretto/program/program.h"

namespace stretto {

// Adds Start and Await of all U tasks to an actor's code, which is complete but for them. Where the schedule says when
// a stage's parameters become whole, all of them are gathered from there on.
void place_gathers(Program&, ActorId, Reshard);

// Does a task read parameters that a U gathers?
bool needs_gathered(const Step&, const Task&);

}  // namespace stretto
