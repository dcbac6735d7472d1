#include "stretto/schedule/timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace stretto {

namespace {

struct Interval {
  double start = std::numeric_limits<double>::infinity(), end = -std::numeric_limits<double>::infinity();
  void add(const Span& s) { start = std::min(start, s.start), end = std::max(end, s.end); }
  double length() const { return end > start ? end - start : 0; }
};

}  // namespace

// Spans of a rank that share an interval: time is counted once.
std::vector<double> Timeline::busy_ranks() const {
  std::vector<double> busy(std::size_t(std::max(actors, 0)) * ranks);
  std::vector<double> until(busy.size(), -std::numeric_limits<double>::infinity());
  for (const Span& s : spans) {
    if (s.lane != Lane::compute || !has(s)) continue;
    double& u = until[row(s)];
    busy[row(s)] += std::max(0.0, s.end - std::max(s.start, u) - s.waiting);
    u = std::max(u, s.end);
  }
  return busy;
}

double Timeline::makespan() const {
  Interval all;
  for (const Span& s : spans) all.add(s);
  return all.length();
}

double Timeline::span() const {
  std::vector<Interval> each(std::size_t(std::max(actors, 0)) * ranks);
  for (const Span& s : spans)
    if (s.lane != Lane::message && has(s)) each[row(s)].add(s);
  double longest = 0;
  for (const Interval& e : each) longest = std::max(longest, e.length());
  return longest;
}

double Timeline::busy(int actor) const {
  if (actor < 0 || actor >= actors) return 0;
  const std::vector<double> all = busy_ranks();
  const auto mine = all.begin() + std::ptrdiff_t(actor) * ranks;
  return std::accumulate(mine, mine + ranks, 0.0) / ranks;
}

double Timeline::bubble(int actor) const {
  const double whole = makespan();
  return whole > 0 ? 1 - busy(actor) / whole : 0;
}

double Timeline::bubble() const {
  const double whole = makespan();
  if (whole <= 0 || actors < 1) return 0;
  const std::vector<double> all = busy_ranks();
  return 1 - std::accumulate(all.begin(), all.end(), 0.0) / (whole * all.size());
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
    if (x.actor == actor && x.coordinate == 0 && x.action && x.action->phase != Phase::F)
      last[{x.action->pipe, x.action->stage, x.action->microbatch}] = x.end;
  std::map<std::tuple<PipeId, StageId, MicrobatchId>, bool> begun;
  std::vector<std::pair<double, double>> changes;
  for (const Span& x : t.spans)
    if (x.actor == actor && x.coordinate == 0 && x.action && x.action->phase == Phase::F &&
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
