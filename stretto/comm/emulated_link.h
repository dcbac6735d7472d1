// A link that is not there: when things arrive that go over it one at a time. Its times are of the steady clock, which
// the processes of one machine share.
//
//   EmulatedLink link;
//   double due = link.message(now(), bytes, Link{1e-5, 1e9});
//   sleep_until_due(due, stopped);
#pragma once
#include <time.h>

#include <algorithm>

#include "stretto/base/clock.h"
#include "stretto/base/id.h"
#include "stretto/comm/stop_flag.h"
#include "stretto/cost/machine.h"

namespace stretto {

struct EmulatedLink {
  double free = 0;  // when what went before has left

  // A message that is sent at `start` arrives then.
  double message(double start, u64 bytes, const Link& over) {
    free = std::max(free, start) + bytes / over.bandwidth;
    return free + over.latency;
  }
  // A collective whose last member starts at `start` is complete then.
  double collective(double start, double seconds) { return free = std::max(free, start) + seconds; }
};

// In slices: a stop is not slept through. Seconds slept.
inline double sleep_until_due(double due, const StopFlag& stopped) {
  double slept = 0;
  for (double left = 0; (left = due - now()) > 0;) {
    stopped.check();
    const double slice = std::min(left, 0.02);
    const timespec t{.tv_sec = 0, .tv_nsec = static_cast<long>(slice * 1e9)};
    nanosleep(&t, nullptr);
    slept += slice;
  }
  return slept;
}

}  // namespace stretto
