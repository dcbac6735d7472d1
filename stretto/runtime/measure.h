// The last recorded step as a Timeline: what the pictures show.
//
//   engine.record(true);
//   engine.run(step);
//   Timeline t = measured_timeline(engine);
#pragma once
#include "stretto/runtime/engine.h"
#include "stretto/schedule/timeline.h"

namespace stretto {

// Of all ranks, those of other processes included. Times are seconds since the first task began. An action that had to
// wait between its tasks is several spans. A message is in flight from its send until it is taken, in the sender's
// lane.
Timeline measured_timeline(const Engine&);

}  // namespace stretto
