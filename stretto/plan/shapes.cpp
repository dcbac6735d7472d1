#include "stretto/plan/inner/shapes.h"

#include <algorithm>
#include <map>
#include <set>

#include "stretto/schedule/builders.h"
#include "stretto/schedule/choice.h"

namespace stretto {
namespace {

constexpr int settled_rounds = 4;  // microbatches per actor after which a schedule repeats itself

bool remakes(const RunKeys& k) { return k.recompute != Recompute::none; }

std::unique_ptr<PlayedSchedule> made(const RunKeys& k, bool remakes) {
  const Request request{.actors = k.pipe, .microbatches = k.microbatches, .chunks = k.chunks};
  return std::make_unique<PlayedSchedule>(valid(choose_schedule(std::string(k.schedule), request)), remakes);
}

bool exists(const RunKeys& k, int microbatches) {
  const BuilderEntry* rule = find_builder(k.schedule);
  return rule && rule->limits.hold(k.pipe, microbatches);
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
  const Schedule& s = *played.schedule();
  const double each = 1.0 * s.actors() / s.stages;
  const StageCost one{.F = each, .I = each, .W = each, .B = 2 * each};
  const PlayTimes times{StageCosts(s.stages, one), IdVector<StageId, double>(s.stages, each),
                        IdVector<StageId, PlayTimes::Sums>(s.stages)};
  return played.ends(times, [](int, int) { return Link{}; }).last;
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

Rounds::Rounds(const RunKeys& k, int microbatches) : keys_(k) {
  keys_.microbatches = microbatches;
  const std::unique_ptr<PlayedSchedule> whole = made(keys_, false);
  for (const Row& row : whole->schedule()->rows) flights_.push_back(most_in_flight(row));
  unit_ends_ = ends_of_units(*whole);
  outline_ = *whole->schedule();
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

MostKept Shape::in_flight(ActorId a) const {
  MostKept n = longer_.in_flight(a);
  if (!shorter_) return n;
  const MostKept& before = shorter_->in_flight(a);
  n.until_i += rounds_ * std::max(0.0, n.until_i - before.until_i);
  n.until_w += rounds_ * std::max(0.0, n.until_w - before.until_w);
  n.for_w += rounds_ * std::max(0.0, n.for_w - before.for_w);
  return n;
}

PlayedEnds Shape::ends(const PlayTimes& times, const ActorLinks& links) {
  const PlayedEnds& ends = longer_.played(remakes_).ends(times, links);
  if (!shorter_) return ends;
  const PlayedEnds& before = shorter_->played(remakes_).ends(times, links);
  return {continued(ends.last, before.last), continued(ends.summed, before.summed), ends.first};
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
