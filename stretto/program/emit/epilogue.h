// What follows the microbatch loop, on all actors together: gradients of shared parameters go to their owners and are
// added up there; norms are computed as the sums over ranks finish, every actor learns all squared norms, parameters
// are updated, and new values of shared ones go back.
//
//   emit_gradients(emitter);     // right after the rows of all actors: part of an actor's last turn (region.h)
//   emit_epilogue(emitter);      // after all else
#pragma once
#include "stretto/program/emit/emitter.h"

namespace stretto {

void emit_gradients(Emitter&);
void emit_epilogue(Emitter&);

}  // namespace stretto
