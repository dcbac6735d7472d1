// The table of schedule builders: one file each in schedule/builders/, one line in builders.def.
//
//   Schedule s = build_schedule("zb-h1", {.actors = 4, .microbatches = 8});
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "stretto/schedule/schedule.h"

namespace stretto {

struct BuilderEntry {
  std::string_view name;     // "zb-h1"
  std::string_view summary;  // one line, for lists and docs
  std::string_view limits;   // "p even, m even, m >= 2p"; "" when every (p, m, v) works
  int default_chunks = 1;
  bool ascending = true;  // accumulates gradients in ascending microbatch order: bit-equal to the serial run
  Schedule (*build)(const Request&) = nullptr;  // throws Error with the nearest workable values
};

std::span<const BuilderEntry> schedule_builders();

// A user's own: afterwards `parallel.schedule = "mine"` finds it. A name that is taken is an error.
void register_schedule(std::string name, std::function<Schedule(const Request&)> build);

// By name, registered ones included; an unknown name is refused with the nearest known one.
Schedule build_schedule(std::string_view name, const Request&);
std::vector<std::string> schedule_names();

}  // namespace stretto
