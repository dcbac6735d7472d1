// How a program is run, as opposed to what it computes: none of this changes the numbers.
//
//   Trainer trainer(compiled, {.timeout = 60, .link = Link{1e-5, 1e9}});
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "stretto/comm/peers.h"
#include "stretto/comm/transport.h"
#include "stretto/cost/machine.h"
#include "stretto/cost/times.h"
#include "stretto/program/lanes.h"

namespace stretto {

enum class DeviceKind : std::uint8_t {  // what each is and can do: devices.h
#define STRETTO_DEVICE(name) name,
#include "stretto/runtime/devices.def"
#undef STRETTO_DEVICE
};

struct RunOptions {
  bool profile = false;                 // time every kernel call
  double timeout = 0;                   // seconds without any progress after which the run is stopped; 0: never
  std::optional<Link> link = {};        // messages and collectives take as long as over such links ...
  std::optional<Cluster> cluster = {};  // ... or as between the ranks of its nodes
  DeviceKind device = DeviceKind::cpu;
  Machine machine = {};               // what is emulated ...
  std::optional<Times> times = {};    // ... unless its times are given, of one full stage per actor
  bool pin = true;                    // one core per actor where there are enough
  std::shared_ptr<Peers> peers = {};  // the other processes: this one has one rank; none: all ranks are threads here
  std::function<std::uint64_t()> say = {};  // what each process tells the others with every step; see StepResult::said

  bool share_all = false;  // for tests: threads of a rank share what is not worth it, too
  // For tests: now and then a rank sleeps for up to so many seconds before a task or a message, by the seed.
  double jitter = 0;
  std::uint64_t jitter_seed = 0;
  std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)> wrap = {};  // puts another one around it
  std::function<void(Lanes&)> lanes = {};                                           // changes what lanes wait for
};

}  // namespace stretto
