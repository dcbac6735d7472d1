#include "stretto/plan/shapes.h"

#include <algorithm>
#include <set>

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

std::unique_ptr<PlayedSchedule> made(const RunKeys& k, bool remakes) {
  const Request request{.actors = k.pipe, .microbatches = k.microbatches, .chunks = k.chunks};
  return std::make_unique<PlayedSchedule>(valid(choose_schedule(std::string(k.schedule), request)), remakes);
}

bool exists(const RunKeys& k, int microbatches) {
  const ScheduleRule* rule = find_rule(k.schedule);
  return rule && (!rule->legal || rule->legal(k.pipe, microbatches));
}

// Many microbatches: those of `longer`, and as many fewer as there are actors in `shorter`.
struct Played {
  int longer = 0;
  std::optional<int> shorter = {};
};
Played played_of(const RunKeys& k) {
  const int p = k.pipe, m = k.microbatches, few = settled_rounds * p + m % p;
  if (m > few + p && exists(k, few) && exists(k, few + p)) return {few + p, few};
  return {m};
}

std::vector<double> ends_of_units(PlayedSchedule& played) {
  const Schedule& s = played.schedule();
  const double each = 1.0 * s.actors() / s.stages;
  const StageCost one{.F = each, .I = each, .W = each, .B = 2 * each};
  const IdVector<StageId, Filled> filled(s.stages, Filled{each, each});
  const PlayTimes times{StageCosts(s.stages, one), filled, filled, IdVector<StageId, double>(s.stages, each),
                        IdVector<StageId, PlayTimes::Group>(s.stages)};
  return played.ends(times, [](int, int) { return Link{}; });
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

Rounds::Rounds(const RunKeys& k, int microbatches) : keys_(k) {
  keys_.microbatches = microbatches;
  const std::unique_ptr<PlayedSchedule> whole = made(keys_, false);
  for (const Row& row : whole->schedule().rows) flights_.push_back(most_in_flight(row));
  unit_ends_ = ends_of_units(*whole);
  outline_ = whole->schedule();
  for (Row& row : outline_.rows) Row().swap(row);
}

PlayedSchedule& Rounds::played(bool remakes) {
  std::unique_ptr<PlayedSchedule>& p = played_[remakes];
  if (!p) p = made(keys_, remakes);
  return *p;
}

Shape::Shape(const RunKeys& k, Rounds& longer, Rounds* shorter)
    : longer_(longer), shorter_(shorter), remakes_(remakes(k)) {
  if (shorter_) rounds_ = 1.0 * (k.microbatches - played_of(k).longer) / k.pipe;
  const std::vector<double> all =
      shorter_ ? continued(longer_.unit_ends(), shorter_->unit_ends()) : longer_.unit_ends();
  unit_ = *std::max_element(all.begin(), all.end());
}

std::vector<double> Shape::continued(std::vector<double> ends, const std::vector<double>& before) const {
  for (std::size_t a = 0; a < ends.size(); ++a) ends[a] += rounds_ * (ends[a] - before[a]);
  return ends;
}

std::vector<double> Shape::ends(const PlayTimes& times, const ActorLinks& links) {
  const std::vector<double>& ends = longer_.played(remakes_).ends(times, links);
  return shorter_ ? continued(ends, shorter_->played(remakes_).ends(times, links)) : ends;
}

std::ptrdiff_t Shape::nodes() {
  return longer_.played(remakes_).nodes() + (shorter_ ? shorter_->played(remakes_).nodes() : 0);
}

std::unique_ptr<Rounds>& Shapes::rounds(const RunKeys& k, int microbatches) {
  return rounds_[{k.schedule, k.pipe, k.chunks, microbatches}];
}

void Shapes::make(const std::vector<const RunKeys*>& keys, const Each& each) {
  struct Missing {
    std::unique_ptr<Rounds>* place;
    const RunKeys* keys;
    int microbatches;
  };
  std::vector<Missing> missing;
  std::set<const std::unique_ptr<Rounds>*> listed;
  for (const RunKeys* k : keys) {
    const Played p = played_of(*k);
    for (const std::optional<int> m : {std::optional(p.longer), p.shorter}) {
      if (!m) continue;
      std::unique_ptr<Rounds>& r = rounds(*k, *m);
      if (!r && listed.insert(&r).second) missing.push_back({&r, k, *m});
    }
  }
  each(missing.size(), [&](std::size_t i) {
    try {
      *missing[i].place = std::make_unique<Rounds>(*missing[i].keys, missing[i].microbatches);
    } catch (const Error&) {  // said again by `of`
    }
  });
}

void Shapes::make_played(const std::vector<const RunKeys*>& keys, const Each& each) {
  make(keys, each);
  std::set<std::pair<Rounds*, bool>> missing;
  for (const RunKeys* k : keys) {
    const Played p = played_of(*k);
    for (const std::optional<int> m : {std::optional(p.longer), p.shorter})
      if (Rounds* r = m ? rounds(*k, *m).get() : nullptr) missing.insert({r, remakes(*k)});
  }
  const std::vector<std::pair<Rounds*, bool>> list(missing.begin(), missing.end());
  each(list.size(), [&](std::size_t i) { list[i].first->played(list[i].second); });
}

Shape& Shapes::of(const RunKeys& k) {
  std::unique_ptr<Shape>& shape = all_[{k.schedule, k.pipe, k.chunks, k.microbatches, remakes(k)}];
  if (shape) return *shape;
  const Played p = played_of(k);
  const auto of = [&](int microbatches) {
    std::unique_ptr<Rounds>& r = rounds(k, microbatches);
    if (!r) r = std::make_unique<Rounds>(k, microbatches);
    return r.get();
  };
  shape = std::make_unique<Shape>(k, *of(p.longer), p.shorter ? of(*p.shorter) : nullptr);
  return *shape;
}

}  // namespace stretto
