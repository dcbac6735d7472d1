// A measured step against what its schedule would have done with every action taking its usual time.
//
//   Prediction p = replay(schedule, measured);      // p.timeline beside `measured` shows what varied and who waited
#pragma once
#include "stretto/simulate/simulate.h"

namespace stretto {

// Mean seconds per stage and phase, over all ranks. Several spans of one action count as one; phases that do not occur
// take no time.
StageCosts measured_costs(const Schedule&, const Timeline& measured);

// Simulates the schedule with these times; sizes of messages and memory are those of options.stages, where they are
// given. Waiting in the middle of actions is part of their time. What the actors do before and after the microbatches
// is taken from the measurement as it is.
Prediction replay(const Schedule&, const Timeline& measured, const SimulateOptions& = {});

}  // namespace stretto
