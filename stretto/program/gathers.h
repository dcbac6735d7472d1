// Where parameters that are cut over ranks are gathered: each piece's before its first use, while the piece before it
// works, so that two pieces' are whole at a time.
#pragma once
#include "stretto/program/program.h"

namespace stretto {

// Adds Start and Await of all U tasks to an actor's code, which is complete but for them.
void place_gathers(Program&, int actor, Reshard);

}  // namespace stretto
