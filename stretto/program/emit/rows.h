// The part of a step that the schedule orders: an actor's row of actions as runs, with the sums of gradients that start
// as soon as the last of them is made.
//
//   for (ActorId a : program.actors.ids()) emit_prologue(emitter, a), emit_row(emitter, a);
//   for (ActorId a : program.actors.ids()) emit_totals(emitter, a);      // after the gradients of epilogue.h
#pragma once
#include "stretto/program/emit/emitter.h"

namespace stretto {

// Counts of all microbatches, and the loss scales that are made of them.
void emit_prologue(Emitter&, ActorId);
// Says how many turns there are then.
std::size_t emit_row(Emitter&, ActorId);
// Outputs that are added up over ranks.
void emit_totals(Emitter&, ActorId);

}  // namespace stretto
