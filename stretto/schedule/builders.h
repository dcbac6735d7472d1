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

// For how many actors and microbatches a schedule exists.
struct ScheduleLimits {
  bool even_actors = false, even_microbatches = false;
  bool equal_groups = false;      // microbatches go in equal groups of at least one per actor, if there are so many
  int per_actor = 0;              // at least so many microbatches per actor
  std::string_view instead = "";  // which schedule to take where this one does not exist

  bool hold(int actors, int microbatches) const;
};

constexpr int any_chunks = 0;

// What is known of a schedule before it is built.
struct BuilderEntry {
  std::string_view name;  // "zb-h1"
  int chunks = 1;         // stages per actor; or any number
  ScheduleLimits limits = {};
  // Accumulates gradients in ascending microbatch order: bit-equal to the serial run. Bidirectional schedules add two
  // partial sums, so theirs are equal to tolerance.
  bool ascending = true;
  bool segments = false;                        // a microbatch may be cut into sequence segments
  bool descends = false;                        // its backward order may be descending
  bool fills = false;                           // weight gradients fill the bubble, some or all of it
  bool searched = true;                         // by plan, without being asked for
  std::string_view summary = "";                // one line, for lists and docs
  Schedule (*build)(const Request&) = nullptr;  // throws Error with the nearest workable values

  int default_chunks() const { return chunks == any_chunks ? 2 : chunks; }
};

std::span<const BuilderEntry> schedule_builders();
const BuilderEntry* find_builder(std::string_view name);  // null: a file, or a user's own

// A user's own: afterwards `parallel.schedule = "mine"` finds it. A name that is taken is an error.
void register_schedule(std::string name, std::function<Schedule(const Request&)> build);

// By name, registered ones included; an unknown name is refused with the nearest known one.
Schedule build_schedule(std::string_view name, const Request&);
std::vector<std::string> schedule_names();

}  // namespace stretto
