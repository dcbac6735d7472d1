// How a program is run, as opposed to what it computes: none of this changes the numbers.
#pragma once
#include <cstdint>
#include <optional>

#include "stretto/cost/machine.h"

namespace stretto {

enum class DeviceKind : std::uint8_t {
  cpu,
  emulated,  // kernels do nothing; a task takes the time that the cost model gives it
};

struct RunOptions {
  bool profile = false;           // time every kernel call
  double timeout = 0;             // seconds without any progress after which the run is stopped; 0: never
  std::optional<Link> link = {};  // messages take as long as over such a link
  DeviceKind device = DeviceKind::cpu;
  Machine machine = {};  // what is emulated
};

}  // namespace stretto
