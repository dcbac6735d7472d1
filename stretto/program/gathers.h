// Where parameters that are cut over ranks are gathered: each piece's before its first use, while the piece before it
// works, so that two pieces' are whole at a time.
#pragma once
#include "stretto/program/program.h"

namespace stretto {

// Adds Start and Await of all U tasks to an actor's code, which is complete but for them. Where the schedule says when
// a stage's parameters become whole, all of them are gathered from there on.
void place_gathers(Program&, int actor, Reshard);

// The schedule with marks for what a program does: from when to when parameters of a stage are whole, when the last of
// its gradients goes on its way. As it is when nothing is cut or summed over ranks.
Schedule with_marks(const Program&);

}  // namespace stretto
