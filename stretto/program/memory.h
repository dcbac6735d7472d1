// The memory plan of one actor: persistent arenas, and activations at fixed offsets by liveness.
#pragma once
#include "stretto/program/program.h"

namespace stretto {

// Fills in slots, arena sizes and addresses of p.actors[actor], whose code is complete.
void plan_memory(Program& p, int actor);

}  // namespace stretto
