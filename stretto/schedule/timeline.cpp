#include "stretto/schedule/timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace stretto {

namespace {

struct Extent {
  double start = std::numeric_limits<double>::infinity(), end = -std::numeric_limits<double>::infinity();
  void add(const Span& s) { start = std::min(start, s.start), end = std::max(end, s.end); }
  double length() const { return end > start ? end - start : 0; }
};

// Members of an overlap group share their interval: time is counted once.
std::vector<double> busy_per_actor(const Timeline& t) {
  std::vector<double> busy(std::max(t.actors, 0)), until(busy.size(), -std::numeric_limits<double>::infinity());
  for (const Span& s : t.spans) {
    if (s.lane != Lane::compute || s.actor < 0 || s.actor >= t.actors) continue;
    double& u = until[s.actor];
    busy[s.actor] += std::max(0.0, s.end - std::max(s.start, u));
    u = std::max(u, s.end);
  }
  return busy;
}

}  // namespace

double Timeline::makespan() const {
  Extent all;
  for (const Span& s : spans) all.add(s);
  return all.length();
}

double Timeline::span() const {
  std::vector<Extent> each(std::max(actors, 0));
  for (const Span& s : spans) {
    if (s.lane != Lane::message && s.actor >= 0 && s.actor < actors) each[s.actor].add(s);
  }
  double longest = 0;
  for (const Extent& e : each) longest = std::max(longest, e.length());
  return longest;
}

double Timeline::busy(int actor) const { return actor >= 0 && actor < actors ? busy_per_actor(*this)[actor] : 0; }

double Timeline::bubble(int actor) const {
  const double whole = makespan();
  return whole > 0 ? 1 - busy(actor) / whole : 0;
}

double Timeline::bubble() const {
  const double whole = makespan();
  if (whole <= 0 || actors < 1) return 0;
  double sum = 0;
  for (const double b : busy_per_actor(*this)) sum += b;
  return 1 - sum / (whole * actors);
}

double Timeline::peak(int actor) const {
  double most = 0;
  if (actor < 0 || actor >= std::ssize(memory)) return most;
  for (const auto& [time, live] : memory[actor]) most = std::max(most, live);
  return most;
}

std::vector<std::pair<double, double>> live_microbatches(const Timeline& t, const Schedule& s, int actor) {
  std::vector<std::pair<double, double>> curve{{0, 0}};
  const double part = 1.0 * s.actors() * s.pipes() / std::max(1, s.stages);
  double amount = 0;
  std::map<std::tuple<PipeId, StageId, MicrobatchId>, double> last;  // end of the last backward span
  for (const Span& x : t.spans)
    if (x.actor == actor && x.action && x.action->phase != Phase::F)
      last[{x.action->pipe, x.action->stage, x.action->microbatch}] = x.end;
  std::map<std::tuple<PipeId, StageId, MicrobatchId>, bool> begun;
  std::vector<std::pair<double, double>> changes;
  for (const Span& x : t.spans)
    if (x.actor == actor && x.action && x.action->phase == Phase::F &&
        !begun[{x.action->pipe, x.action->stage, x.action->microbatch}]) {
      begun[{x.action->pipe, x.action->stage, x.action->microbatch}] = true;
      changes.push_back({x.start, part});
    }
  for (const auto& [key, end] : last) changes.push_back({end, -part});
  std::sort(changes.begin(), changes.end());
  for (const auto& [time, change] : changes) curve.push_back({time, amount += change});
  return curve;
}

}  // namespace stretto
