// The schedule of a run, checked. One with faults is refused with all of them, and so is what cannot be trained yet.
//
//   Schedule s = schedule_of({.mesh = {{"pipe", 4}}, .schedule = "zb-h1"}, 8);
//   Schedule f = forward_part(s);
#pragma once
#include "stretto/compile/training.h"

namespace stretto {

Schedule schedule_of(const Parallel&, int microbatches, int segments = 1);

// Compiling takes about 1 us and 0.6 KiB per task that a step runs, on all actors together, mostly for where its
// arguments lie. Every rank that is a process compiles, so more than this, 2 GiB each, is refused before it is begun.
constexpr i64 most_tasks = 3'000'000;
void check_tasks(i64 pieces, i64 microbatches, bool trains);

// Forward only, for evaluation, which sees whole sequences.
Schedule forward_part(Schedule);
// The same for any number of microbatches: if the schedule has another, they go one after the other through the first
// pipe.
Schedule forward_part(Schedule, int microbatches);

}  // namespace stretto
