// A program's collectives of storage, in the notation of schedules.
//
//   write_csv(with_marks(program), "mine.csv");
#pragma once
#include "stretto/program/program.h"

namespace stretto {

// The program's schedule with marks for what the program does: from when to when a stage's parameters are whole, and
// when the last of its gradients is sent off to be reduced. Unchanged when nothing is cut or summed over ranks.
Schedule with_marks(const Program&);

}  // namespace stretto
