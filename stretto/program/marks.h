// A program's collectives of storage, in the notation of schedules.
//
//   write_csv(with_marks(program), "mine.csv");
#pragma once
#include "stretto/program/program.h"

namespace stretto {

// The schedule with marks for what a program does: from when to when parameters of a stage are whole, when the last of
// its gradients goes on its way. As it is when nothing is cut or summed over ranks.
Schedule with_marks(const Program&);

}  // namespace stretto
