#include "stretto/plan/shapes.h"

#include <algorithm>

#include "stretto/plan/space.h"
#include "stretto/schedule/choice.h"

namespace stretto {
namespace {

constexpr int settled_rounds = 4;  // after so many microbatches per actor a schedule repeats itself

SimulateOptions as_it_runs(const Schedule& s) {
  SimulateOptions o{.repeats = 0, .timeline = false};
  StageCost any{.B = 2};
  o.stages.assign(s.stages, any);
  return o;
}

std::unique_ptr<PlayedSchedule> played(const RunKeys& k, int microbatches) {
  const Request request{.actors = k.pipe, .microbatches = microbatches, .chunks = k.chunks};
  return std::make_unique<PlayedSchedule>(valid(choose_schedule(std::string(k.schedule), request)));
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

PlayedSchedule::PlayedSchedule(Validated<Schedule> s)
    : schedule_(std::move(s)),
      options_(as_it_runs(*schedule_)),
      tape_(tape_of(schedule_, options_.stages, options_)),
      player_(tape_.tape),
      from_(schedule_->rows.size()) {
  for (std::uint32_t n = 1; n < tape_.items.size(); ++n) {
    const Action &a = tape_.action(n), &before = tape_.action(n - 1);
    if (a.phase == Phase::W && tape_.actor(n) == tape_.actor(n - 1)) fillers_.push_back({n, a.stage, before.phase});
  }
}

const std::vector<double>& PlayedSchedule::ends(const PlayTimes& times, const ActorLinks& links) {
  options_.link = links;
  set_times(tape_, times.stages, options_);
  for (const Filler& f : fillers_) {
    const double alone = times.stages[f.stage].W;
    tape_.tape.durations[f.node] = f.before == Phase::F   ? times.w_after_f[f.stage]
                                   : f.before == Phase::W ? alone
                                                          : times.w_after_i[f.stage];
  }
  player_.play(from_);
  return player_.ends();
}

Shape::Shape(const RunKeys& k) {
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
    const IdVector<StageId, double> w(s.stages, each);
    const std::vector<double> all = ends({StageCosts(s.stages, one), w, w}, [](int, int) { return Link{}; });
    unit_ = *std::max_element(all.begin(), all.end());
  }
  return *unit_;
}

Shape& Shapes::of(const RunKeys& k) {
  std::unique_ptr<Shape>& shape = all_[{k.schedule, k.pipe, k.chunks, k.microbatches}];
  if (!shape) shape = std::make_unique<Shape>(k);
  return *shape;
}

}  // namespace stretto
