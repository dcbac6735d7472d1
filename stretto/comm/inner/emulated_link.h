// An emulated link: when things would arrive that go over it one at a time.
//
//   EmulatedLink link;
//   double due = link.message(emulated_now(), bytes, Link{1e-5, 1e9});
//   pass_until(due, stopped);
#pragma once
#include <algorithm>

#include "stretto/base/id.h"
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

}  // namespace stretto
