// Numbers that go along with messages: a program with the same transfers as another one, each of one double.
//
//   Program notes = notes_of(program);
//   double* mine = reinterpret_cast<double*>(arenas[Arena::activations]);       // one per transfer
#pragma once
#include "stretto/program/program.h"

namespace stretto {

// Transfer t takes its number from the t-th double of the sender's activations to the t-th of the receiver's.
Program notes_of(const Program&);

}  // namespace stretto
