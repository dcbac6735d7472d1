// The memory plan: persistent arenas, and activations at fixed offsets by liveness.
//
//   plan_memory(program);      // fills in slots, arena sizes and addresses
#pragma once
#include "stretto/program/program.h"

namespace stretto {

struct MemoryOptions {
  const Program* params_of = nullptr;  // parameters lie where this program has them
  bool undo = false;                   // there is memory for what parameters and state were before each of two steps
  bool sizes = false;                  // only how large arenas are, in a third of the time
};
// For all actors, whose code must be complete and its order settled (order.h).
void plan_memory(Program&, const MemoryOptions& = {});

// Of so many buffers, each counted at every run, packing everything at once would take too long. The temporaries of all
// whole runs share a block then, and the rest is packed quickly.
bool too_many_to_pack(double buffers, std::size_t actors);
u64 bytes_of_temporaries(const Calls&);  // of a body, in such a block

}  // namespace stretto
