// Where work of a rank goes on side by side: what is in one lane runs in order, lanes wait for each other only where an
// event says so (kernels/device.h). Which instruction is in which lane, and what it waits for: program/lanes.h.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto {

enum class DeviceLane : std::uint8_t {
  compute,      // tasks, with the collectives that they wait for in place
  messages,     // what is sent while tasks go on
  collectives,  // of tasks, started before they are awaited
  gradients,    // sums of gradients
  storage,      // gathers of parameters, reduce-scatters of gradients
};
constexpr std::size_t lane_count = 5;

}  // namespace stretto
