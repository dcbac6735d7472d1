// Timelines as Chrome-trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
//
//   write("1f1b.json", chrome_trace(timeline));
//
// A process is an actor, a thread a lane; arrows lead from an action to the one that consumes its message; memory is a
// counter. Several timelines follow each other as further processes.
#pragma once
#include <span>
#include <string>

#include "stretto/schedule/timeline.h"
#include "stretto/view/scene.h"

namespace stretto {

// In `units` one unit of the given costs becomes a millisecond of the trace.
std::string chrome_trace(std::span<const Timeline>, Clock = Clock::units);
std::string chrome_trace(const Timeline&, Clock = Clock::units);

}  // namespace stretto
