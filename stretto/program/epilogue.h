// What follows the microbatch loop, on all actors together: gradients of shared parameters go to their owners, norms
// are computed as the sums over ranks finish, every actor learns all squared norms, parameters are updated, and new
// values of shared ones go back.
//
//   emit_epilogue(emitter);      // after the rows of all actors
#pragma once
#include "stretto/program/emitter.h"

namespace stretto {

void emit_epilogue(Emitter&);

}  // namespace stretto
