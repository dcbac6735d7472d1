#include "stretto/simulate/schedule_tape.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"

namespace stretto {

namespace {

bool finite(double x) { return std::isfinite(x) && x >= 0; }

double time_of(const StageCost& c, Phase p) {
  switch (p) {
    case Phase::F:
      return c.F;
    case Phase::I:
      return c.I;
    case Phase::W:
      return c.W;
    case Phase::B:
      return c.B.value_or(c.I + c.W);
    case Phase::R:
      return c.R.value_or(c.F);
  }
  return 0;
}

// Does the action recompute what it needs of its forward?
bool implies_r(const ActionIndex& ix, const StageCosts& costs, const Action& a) {
  return (a.phase == Phase::B || a.phase == Phase::I) && costs[a.stage].R && !ix.first(ix.key(a), Phase::R);
}

void add_nodes(ScheduleTape& t, const StageCosts& costs) {
  const ActionIndex& ix = t.index;
  t.items.reserve(ix.size());
  t.node_of.reserve(ix.size());
  t.tape.rows.reserve(ix.actors() + 1);
  t.tape.rows.push_back(0);
  for (const ActorId actor : ids_until<ActorId>(ix.actors())) {
    for (std::uint32_t i = ix.begin(actor); i < ix.end(actor); ++i) {
      if (implies_r(ix, costs, ix.actions[i])) t.items.push_back({.action = i, .implied = true});
      t.node_of.push_back(t.items.size());
      t.items.push_back({.action = i});
    }
    t.tape.rows.push_back(t.items.size());
  }
}

// A link per (source, target) that is used; stages have one neighbour each way, so this stays small.
class LinkNumbers {
 public:
  LinkNumbers(ScheduleTape& t, std::size_t actors) : t_(t), of_(actors) {}
  std::uint32_t operator()(ActorId from, ActorId to) {
    for (const std::uint32_t number : of_[from])
      if (t_.links[number].second == to) return number;
    t_.links.push_back({from, to});
    return of_[from].emplace_back(t_.tape.links++);
  }

 private:
  ScheduleTape& t_;
  IdVector<ActorId, std::vector<std::uint32_t>> of_;
};

// Messages between actors, in the order in which they leave; on one actor the row's order is enough.
void add_edges(ScheduleTape& t, std::size_t actors) {
  const ActionIndex& ix = t.index;
  std::vector<ActionNumber> taker(ix.size());
  for (std::uint32_t i = 0; i < ix.size(); ++i)
    if (const ActionNumber from = ix.producer(i)) taker[*from] = i;
  LinkNumbers number(t, actors);
  t.tape.first_edge.reserve(t.items.size() + 1);
  t.tape.first_edge.push_back(0);
  t.tape.edges.reserve(ix.size());
  for (const TapeItem& item : t.items) {
    const std::uint32_t i = item.action;
    if (!item.implied && taker[i] && ix.actor[*taker[i]] != ix.actor[i]) {
      const std::uint32_t to = *taker[i];
      t.tape.edges.push_back({.to = t.node_of[to], .link = number(ix.actor[i], ix.actor[to])});
      t.sent.push_back(i);
      t.taken.push_back(to);
    }
    t.tape.first_edge.push_back(t.tape.edges.size());
  }
}

std::vector<Link> links_of(const ScheduleTape& t, const SimulateOptions& o) {
  std::vector<Link> links;
  for (const auto& [from, to] : t.links) {
    const Link& l = links.emplace_back(o.link ? o.link(from.value, to.value) : Link{.latency = o.times.message});
    if (!finite(l.latency) || !(l.bandwidth > 0))
      throw Error("simulate", "the link from actor {} to actor {} has latency {} and bandwidth {}", from.value,
                  to.value, l.latency, l.bandwidth)
          .hint("latencies are not negative, bandwidths above 0");
  }
  return links;
}

double share_of(const ScheduleTape& t, const StageCost& c, const Action& a) {
  return c.shares.empty() ? 1.0 / t.segments : c.shares[a.segment];
}

double duration(const ScheduleTape& t, const TapeItem& item, const StageCosts& costs) {
  const Action& a = t.index.actions[item.action];
  return time_of(costs[a.stage], item.implied ? Phase::R : a.phase) * share_of(t, costs[a.stage], a);
}

void check(const StageCost& c, StageId stage, int segments) {
  if (!c.shares.empty() && std::cmp_not_equal(c.shares.size(), segments))
    throw Error("simulate", "stage {} has shares of {} segments, and there are {}", stage.value, c.shares.size(),
                segments)
        .hint("give one share per segment, or none");
  for (const double x : c.shares)
    if (!finite(x))
      throw Error("simulate", "a segment's share of stage {} is {}", stage.value, x).hint("shares are not negative");
  for (const double x : {c.F, c.I, c.W, c.B.value_or(0), c.R.value_or(0), c.activation_bytes, c.kept_bytes,
                         c.weight_bytes, c.message_bytes})
    if (!finite(x))
      throw Error("simulate", "stage {} has a time or size of {}", stage.value, x)
          .hint("times and sizes are finite and not negative");
}

}  // namespace

StageCosts stage_costs(const Schedule& s, const SimulateOptions& o) {
  StageCosts costs = o.stages;
  if (costs.empty()) {
    const double v = 1.0 * s.stages / s.actors();
    StageCost each{.F = o.times.F / v, .I = o.times.I / v, .W = o.times.W / v};
    if (o.recompute) each.R = *o.recompute / v;
    costs.assign(s.stages, each);
  }
  if (std::cmp_not_equal(costs.size(), s.stages))
    throw Error("simulate", "{} stage costs for {} stages", costs.size(), s.stages).hint("give one per stage, or none");
  for (const StageId stage : costs.ids()) check(costs[stage], stage, s.segments);
  if (!(o.freed_by_i >= 0 && o.freed_by_i <= 1))
    throw Error("simulate", "an input gradient cannot free {} of an activation", o.freed_by_i)
        .hint("give a share of 0 to 1");
  if (!finite(o.times.message) || !finite(o.epilogue))
    throw Error("simulate", "message time {}, epilogue {}", o.times.message, o.epilogue)
        .hint("times are finite and not negative");
  return costs;
}

ScheduleTape tape_of(const Validated<Schedule>& s, const StageCosts& costs, const SimulateOptions& o) {
  ScheduleTape t{.index = ActionIndex(*s), .segments = s->segments, .tape = {.contention = o.contention}};
  add_nodes(t, costs);
  add_edges(t, s->rows.size());
  set_times(t, costs, o);
  return t;
}

void set_times(ScheduleTape& t, const StageCosts& costs, const SimulateOptions& o) {
  t.tape.durations.clear();
  for (const TapeItem& item : t.items) t.tape.durations.push_back(duration(t, item, costs));
  const std::vector<Link> links = links_of(t, o);
  const double part = 1.0 / t.segments;  // of what a microbatch sends
  for (std::size_t e = 0; e < t.tape.edges.size(); ++e) {
    const Action &from = t.index.actions[t.sent[e]], &to = t.index.actions[t.taken[e]];
    const StageCost& c = costs[from.stage];
    Edge& edge = t.tape.edges[e];
    edge.delay = links[edge.link].seconds(costs[std::min(from.stage, to.stage)].message_bytes * part);
    edge.early = from.phase == Phase::B ? std::max(0.0, time_of(c, Phase::B) - c.I) * share_of(t, c, from) : 0;
  }
}

StepClock::StepClock(const Validated<Schedule>& s, SimulateOptions o)
    : options_(std::move(o)),
      tape_(tape_of(s, stage_costs(*s, options_), options_)),
      player_(tape_.tape),
      from_(s->rows.size()) {}

double StepClock::makespan(const StageCosts& costs) {
  set_times(tape_, costs, options_);
  player_.play(from_);
  return *std::max_element(player_.ends().begin(), player_.ends().end());
}

}  // namespace stretto
