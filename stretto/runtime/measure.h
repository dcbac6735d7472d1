// The last recorded step as a Timeline: what the pictures show.
//
//   engine.record(true);
//   engine.run(step);
//   Timeline t = measured_timeline(engine);
#pragma once
#include "stretto/runtime/engine.h"
#include "stretto/schedule/timeline.h"

namespace stretto {

// Of all ranks, of other processes too. Times in seconds from the first task's start. An action whose tasks had to wait in
// between is several spans. A message is in flight from when it is sent until it is taken, on the sender's lane.
Timeline measured_timeline(const Engine&);

}  // namespace stretto
