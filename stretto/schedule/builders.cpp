#include "stretto/schedule/builders.h"

#include <map>
#include <mutex>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/schedule/builders/common.h"

namespace stretto {

namespace {

constexpr int any = 0;  // any number of chunks per actor

constexpr int default_chunks(int chunks) { return chunks == any ? 2 : chunks; }

// What holds for every builder: defaults filled in, and what the builder has no meaning for is refused.
Request settled(Request r, std::string_view name, int chunks, bool segments) {
  if (r.chunks == 0) r.chunks = default_chunks(chunks);
  if (chunks != any && r.chunks != chunks) {
    throw Error(name, "{} chunks per actor, where this schedule has {}", r.chunks, chunks)
        .hint("use {} chunk{}, or {}", chunks, chunks == 1 ? "" : "s",
              chunks == 1 ? "interleaved-1f1b, looped-bfs or interleaved-zb for more"
                          : "interleaved-zb for other numbers");
  }
  if (!segments && r.segments != 1) {
    throw Error(name, "{} sequence segments, where this schedule does not cut microbatches", r.segments)
        .hint("use 1 segment, or seq-1f1b");
  }
  if (r.descending && name != "gpipe" && name != "looped-bfs") {
    throw Error(name, "its backward order cannot be descending").hint("only gpipe and looped-bfs have that option");
  }
  return r;
}

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::function<Schedule(const Request&)>, std::less<>> builders;
};

Registry& registry() {
  static Registry r;
  return r;
}

const BuilderEntry* find(std::string_view name) {
  for (const BuilderEntry& e : schedule_builders()) {
    if (e.name == name) return &e;
  }
  return nullptr;
}

}  // namespace

std::span<const BuilderEntry> schedule_builders() {
  static constexpr BuilderEntry table[] = {
#define STRETTO_SCHEDULE(id, function, chunks, segments, ascending, limits, summary) \
  {id, summary, limits, default_chunks(chunks), ascending, [](const Request& r) {    \
     Schedule s = builders::function(settled(r, id, chunks, segments));              \
     s.name = id;                                                                    \
     return s;                                                                       \
   }},
#include "stretto/schedule/builders.def"
#undef STRETTO_SCHEDULE
  };
  return table;
}

void register_schedule(std::string name, std::function<Schedule(const Request&)> build) {
  if (name.empty()) throw Error("register_schedule", "a schedule needs a name").hint("give one that is not taken");
  if (!build) throw Error("register_schedule", "'{}' has no function", name).hint("give a function of a Request");
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (find(name) || r.builders.contains(name)) {
    throw Error("register_schedule", "the name '{}' is taken", name).hint("choose another name");
  }
  r.builders.emplace(std::move(name), std::move(build));
}

Schedule build_schedule(std::string_view name, const Request& request) {
  if (const BuilderEntry* e = find(name)) return e->build(request);
  std::function<Schedule(const Request&)> build;
  {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    if (const auto it = r.builders.find(name); it != r.builders.end()) build = it->second;
  }
  if (!build) {
    const std::vector<std::string> names = schedule_names();
    const std::optional<std::string> near = nearest(name, names);
    throw Error("schedule", "there is no schedule '{}'", name)
        .hint("{}known are {}", near ? fmt::format("did you mean '{}'? ", *near) : "", join(names, ", "));
  }
  Schedule s = build(request);
  if (s.actors() != request.actors || s.microbatches != request.microbatches) {
    throw Error(name, "made a schedule of {} actors and {} microbatches when asked for {} and {}", s.actors(),
                s.microbatches, request.actors, request.microbatches)
        .hint("start from looped(request), v_shaped(request) or bidirectional(request)");
  }
  s.name = name;
  return s;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const BuilderEntry& e : schedule_builders()) names.emplace_back(e.name);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  for (const auto& [name, build] : r.builders) names.push_back(name);
  return names;
}

}  // namespace stretto
