#include "stretto/plan/shapes.h"

#include <algorithm>

#include "stretto/plan/space.h"
#include "stretto/schedule/choice.h"

namespace stretto {
namespace {

constexpr int settled_rounds = 4;  // after so many microbatches per actor a schedule repeats itself

SimulateOptions as_it_runs(const Schedule& s, bool remakes) {
  SimulateOptions o{.repeats = 0, .timeline = false};
  StageCost any{.B = 2};
  if (remakes) any.R = 0;
  o.stages.assign(s.stages, any);
  return o;
}

bool remakes(const RunKeys& k) { return k.recompute != Recompute::none; }

std::unique_ptr<PlayedSchedule> played(const RunKeys& k, int microbatches) {
  const Request request{.actors = k.pipe, .microbatches = microbatches, .chunks = k.chunks};
  return std::make_unique<PlayedSchedule>(valid(choose_schedule(std::string(k.schedule), request)), remakes(k));
}

bool exists(const RunKeys& k, int microbatches) {
  const ScheduleRule* rule = find_rule(k.schedule);
  return rule && (!rule->legal || rule->legal(k.pipe, microbatches));
}

MostKept most_in_flight(const Row& row) {
  const auto size = [](const MostKept& n) { return n.until_i + n.until_w + n.for_w; };
  MostKept now, most;
  for (const Action& a : row) {
    if (a.phase == Phase::F) ++now.until_i, ++now.until_w;
    if (size(now) > size(most)) most = now;
    if (a.phase == Phase::I) --now.until_i, ++now.for_w;
    if (a.phase == Phase::W) --now.until_w, --now.for_w;
    if (a.phase == Phase::B) --now.until_i, --now.until_w;
  }
  return most;
}

}  // namespace

PlayedSchedule::PlayedSchedule(Validated<Schedule> s, bool remakes)
    : schedule_(std::move(s)),
      options_(as_it_runs(*schedule_, remakes)),
      tape_(tape_of(schedule_, options_.stages, options_)),
      player_(tape_.tape),
      from_(schedule_->rows.size()) {
  for (std::uint32_t n = 0; n < tape_.items.size(); ++n) {
    const Action& a = tape_.action(n);
    if (tape_.items[n].implied || (a.phase != Phase::F && a.phase != Phase::I)) continue;
    const bool followed =
        n + 1 < tape_.items.size() && tape_.actor(n + 1) == tape_.actor(n) && tape_.action(n + 1).phase == Phase::W;
    if (followed)
      turns_.push_back({n, a.stage, tape_.action(n + 1).stage, a.phase});
    else if (a.phase == Phase::I)
      alone_.push_back({n, a.stage});
  }
  find_pairs();
}

// A forward and a B, in either order; what is made again before the B is a node of its own.
void PlayedSchedule::find_pairs() {
  for (std::uint32_t n = 0; n < tape_.items.size(); ++n) {
    const Action& a = tape_.action(n);
    if (tape_.items[n].implied || a.overlap == 0) continue;
    std::uint32_t next = n + 1;
    if (next < tape_.items.size() && tape_.items[next].implied) ++next;
    if (next >= tape_.items.size() || tape_.actor(next) != tape_.actor(n)) continue;
    const Action& b = tape_.action(next);
    const bool both = (a.phase == Phase::F && b.phase == Phase::B) || (a.phase == Phase::B && b.phase == Phase::F);
    if (b.overlap == a.overlap && both) pairs_.push_back({n, next});
  }
}

void PlayedSchedule::set_pair(const Pair& p, const PlayTimes& times) {
  const bool forward_first = tape_.action(p.first).phase == Phase::F;
  const StageId f = tape_.action(forward_first ? p.first : p.second).stage;
  const StageId b = tape_.action(forward_first ? p.second : p.first).stage;
  const StageCost &of_f = times.stages[f], &of_b = times.stages[b];
  const double total = of_f.F + *of_b.B - (times.groups[f].saved + times.groups[b].saved) / 2;
  const double f_given = std::clamp(of_f.F + times.groups[f].late_f, 0.0, total);
  const double b_given = std::clamp(of_b.I + times.groups[b].late_b, 0.0, total);
  const double first = forward_first ? f_given : b_given, second = forward_first ? b_given : f_given;
  Tape& tape = tape_.tape;
  tape.durations[p.first] = first;
  tape.durations[p.second] = total - first;
  for (std::uint32_t e = tape.first_edge[p.first]; e < tape.first_edge[p.first + 1]; ++e) tape.edges[e].early = 0;
  for (std::uint32_t e = tape.first_edge[p.second]; e < tape.first_edge[p.second + 1]; ++e)
    tape.edges[e].early = std::min(total - second, total - first);
}

const std::vector<double>& PlayedSchedule::ends(const PlayTimes& times, const ActorLinks& links) {
  options_.link = links;
  set_times(tape_, times.stages, options_);
  std::vector<double>& durations = tape_.tape.durations;
  for (const Turn& t : turns_) {
    const IdVector<StageId, Filled>& filled = t.phase == Phase::F ? times.f : times.i;
    durations[t.node] = filled[t.stage].first;
    durations[t.node + 1] = filled[t.of_w].w;
  }
  for (const auto& [node, stage] : alone_) durations[node] = times.alone[stage];
  for (const Pair& p : pairs_) set_pair(p, times);
  player_.play(from_);
  return player_.ends();
}

Shape::Shape(const RunKeys& k) : remakes_(remakes(k)) {
  const int p = k.pipe, m = k.microbatches, few = settled_rounds * p + m % p;
  if (m > few + p && exists(k, few) && exists(k, few + p)) {
    shorter_ = played(k, few);
    longer_ = played(k, few + p);
    rounds_ = 1.0 * (m - few - p) / p;
  } else {
    longer_ = played(k, m);
  }
  for (const Row& row : schedule().rows) flights_.push_back(most_in_flight(row));
}

std::vector<double> Shape::ends(const PlayTimes& times, const ActorLinks& links) {
  std::vector<double> ends = longer_->ends(times, links);
  if (!shorter_) return ends;
  const std::vector<double>& before = shorter_->ends(times, links);
  for (std::size_t a = 0; a < ends.size(); ++a) ends[a] += rounds_ * (ends[a] - before[a]);
  return ends;
}

double Shape::unit() {
  if (!unit_) {
    const Schedule& s = schedule();
    const double each = 1.0 * s.actors() / s.stages;
    StageCost one{.F = each, .I = each, .W = each, .B = 2 * each};
    if (remakes_) one.R = 0;
    const IdVector<StageId, Filled> filled(s.stages, Filled{each, each});
    const PlayTimes times{StageCosts(s.stages, one), filled, filled, IdVector<StageId, double>(s.stages, each),
                          IdVector<StageId, PlayTimes::Group>(s.stages)};
    const std::vector<double> all = ends(times, [](int, int) { return Link{}; });
    unit_ = *std::max_element(all.begin(), all.end());
  }
  return *unit_;
}

std::unique_ptr<Shape>& Shapes::place(const RunKeys& k) {
  return all_[{k.schedule, k.pipe, k.chunks, k.microbatches, remakes(k)}];
}

void Shapes::make(const std::vector<const RunKeys*>& keys, const Each& each) {
  std::map<std::unique_ptr<Shape>*, const RunKeys*> missing;
  for (const RunKeys* k : keys)
    if (std::unique_ptr<Shape>& shape = place(*k); !shape) missing.try_emplace(&shape, k);
  const std::vector<std::pair<std::unique_ptr<Shape>*, const RunKeys*>> list(missing.begin(), missing.end());
  each(list.size(), [&](std::size_t i) {
    try {
      *list[i].first = std::make_unique<Shape>(*list[i].second);
      list[i].first->get()->unit();
    } catch (const Error&) {  // said again by `of`
    }
  });
}

Shape& Shapes::of(const RunKeys& k) {
  std::unique_ptr<Shape>& shape = place(k);
  if (!shape) shape = std::make_unique<Shape>(k);
  return *shape;
}

}  // namespace stretto
