// Whether the devices of a process do what messages and collectives need of them, and how fast: words and copies
// between every two, every kind of collective between all, against what the host makes of the same numbers.
//
//   const LaneCheck c = check_lanes({device_0, device_1});      // Error: what came is not what was sent
//   fmt::print("{:.1f} us\n", 1e6 * c.words.worst);
#pragma once
#include <vector>

#include "stretto/kernels/lane_device.h"

namespace stretto {

struct LaneCheck {
  struct Range {
    double best = 0, worst = 0;
  };
  Range words;   // seconds from one device's lane to another's
  Range copies;  // bytes per second
  int pairs = 0, collectives = 0;
};
// They reach each other already. `bytes`: of a copy.
LaneCheck check_lanes(const std::vector<LaneDevice*>&, std::size_t bytes = std::size_t(16) << 20);

}  // namespace stretto
