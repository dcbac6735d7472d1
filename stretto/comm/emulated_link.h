// An emulated link: when things would arrive that go over it one at a time. Times are those of the steady clock, which
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
  double free = 0;  // when all that was sent before has left

  // When a message that is sent at `start` arrives.
  double message(double start, u64 bytes, const Link& over) {
    free = std::max(free, start) + bytes / over.bandwidth;
    return free + over.latency;
  }
  // When a collective whose last member starts at `start` is complete.
  double collective(double start, double seconds) { return free = std::max(free, start) + seconds; }
};

// Sleeps in slices, so that a stop is noticed. Returns the seconds slept.
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
