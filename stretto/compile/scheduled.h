// The schedule of a run: what is asked for, checked, and refused with all its faults or with what cannot be trained
// yet.
//
//   Schedule s = schedule_of({.mesh = {{"pipe", 4}}, .schedule = "zb-h1"}, 8);
//   Schedule f = forward_part(s);
#pragma once
#include "stretto/compile/training.h"

namespace stretto {

Schedule schedule_of(const Parallel&, int microbatches);

// Forward only, for evaluation.
Schedule forward_part(Schedule);
// Also for another number of microbatches than the schedule has: one after the other through the first pipe.
Schedule forward_part(Schedule, int microbatches);

}  // namespace stretto
