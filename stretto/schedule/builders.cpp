#include "stretto/schedule/builders.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/schedule/builders/common.h"

namespace stretto {

namespace {

// "8 or 12": the nearest numbers below and above n for which `works` holds.
template <class Works>
std::string nearest_numbers(int n, Works works) {
  int below = n - 1, above = n + 1;
  while (below > 0 && !works(below)) --below;
  while (!works(above)) ++above;
  return below > 0 ? fmt::format("{} or {}", below, above) : fmt::format("{}", above);
}

void check_limits(const BuilderEntry& e, int p, int m) {
  const ScheduleLimits& l = e.limits;
  if (l.hold(p, m)) return;
  const std::string other = l.instead.empty() ? "" : fmt::format(", or {}", l.instead);
  if (l.even_actors && p % 2 != 0)
    throw Error(e.name, "{} actors cannot face each other in pairs", p)
        .hint("use {} actors{}", nearest_numbers(p, [](int n) { return n % 2 == 0; }), other);
  const std::string groups = fmt::format("do not fall into {} equal groups on {} actors", m / p, p);
  const std::string least =
      fmt::format("on {} actors, where it needs {} {}", p,
                  l.even_microbatches ? "an even number of at least" : "at least", l.per_actor * p);
  throw Error(e.name, "{} microbatches {}", m, l.equal_groups ? groups : least)
      .hint("use {} microbatches{}", nearest_numbers(m, [&](int n) { return l.hold(p, n); }), other);
}

std::string with_segments() {
  std::vector<std::string> names;
  for (const BuilderEntry& e : schedule_builders())
    if (e.segments) names.emplace_back(e.name);
  return join(names, ", ");
}

// What holds for every builder: defaults filled in, and what the builder has no meaning for is refused.
Request settled(Request r, const BuilderEntry& e) {
  if (r.chunks == 0) r.chunks = e.default_chunks();
  if (e.chunks != any_chunks && r.chunks != e.chunks) {
    throw Error(e.name, "{} chunks per actor, where this schedule has {}", r.chunks, e.chunks)
        .hint("use {} chunk{}, or {}", e.chunks, e.chunks == 1 ? "" : "s",
              e.chunks == 1 ? "interleaved-1f1b, looped-bfs or interleaved-zb for more"
                            : "interleaved-zb for other numbers");
  }
  if (!e.segments && r.segments != 1) {
    throw Error(e.name, "{} sequence segments, where this schedule does not cut microbatches", r.segments)
        .hint("use 1 segment, or {}", with_segments());
  }
  if (r.descending && !e.descends) {
    throw Error(e.name, "its backward order cannot be descending").hint("only gpipe and looped-bfs have that option");
  }
  check_sizes(r);
  check_limits(e, r.actors, r.microbatches);
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

}  // namespace

bool ScheduleLimits::hold(int p, int m) const {
  return !(even_actors && p % 2 != 0) && !(even_microbatches && m % 2 != 0) && i64{m} >= i64{per_actor} * p &&
         !(equal_groups && m % std::max(1, m / p) != 0);
}

std::span<const BuilderEntry> schedule_builders() {
  static constexpr BuilderEntry table[] = {
#define STRETTO_SCHEDULE(function, ...)                  \
  {__VA_ARGS__, .build = [](const Request& r) {          \
     static constexpr BuilderEntry entry{__VA_ARGS__};   \
     Schedule s = builders::function(settled(r, entry)); \
     s.name = entry.name;                                \
     return s;                                           \
   }},
#include "stretto/schedule/builders.def"
#undef STRETTO_SCHEDULE
  };
  return table;
}

const BuilderEntry* find_builder(std::string_view name) {
  const auto all = schedule_builders();
  const auto it = std::ranges::find(all, name, &BuilderEntry::name);
  return it == all.end() ? nullptr : &*it;
}

void register_schedule(std::string name, std::function<Schedule(const Request&)> build) {
  if (name.empty()) throw Error("register_schedule", "a schedule needs a name").hint("give one that is not taken");
  if (!build) throw Error("register_schedule", "'{}' has no function", name).hint("give a function of a Request");
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (find_builder(name) || r.builders.contains(name)) {
    throw Error("register_schedule", "the name '{}' is taken", name).hint("choose another name");
  }
  r.builders.emplace(std::move(name), std::move(build));
}

Schedule build_schedule(std::string_view name, const Request& request) {
  if (const BuilderEntry* e = find_builder(name)) return e->build(request);
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
