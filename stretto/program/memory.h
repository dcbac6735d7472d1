// The memory plan: persistent arenas, and activations at fixed offsets by liveness.
#pragma once
#include "stretto/program/program.h"

namespace stretto {

// Everything starts on 64 bytes.
inline u64 aligned(u64 bytes) { return (bytes + 63) / 64 * 64; }

// Fills in slots, arena sizes and addresses of all actors, whose code is complete and in order (order.h).
void plan_memory(Program&);

// When every instruction of an actor starts, counted in kernel calls, and when the last one ends.
std::vector<i64> instruction_clock(const Program&, const ActorProgram&);

}  // namespace stretto
