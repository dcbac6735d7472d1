#include "stretto/simulate/replay.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

namespace stretto {
namespace {

bool counts(const Span& s) { return s.lane == Lane::compute && s.action; }

// What an actor's first rank did before its first and after its last action, in order. What comes after is cut where
// some actor had to wait for others (the norm is everybody's): a part starts when all have done the one before.
struct Edges {
  std::vector<Span> before;
  std::vector<std::vector<Span>> after;
};

std::vector<Edges> edges_of(const Timeline& t) {
  std::vector<double> first(t.actors, std::numeric_limits<double>::infinity());
  for (const Span& s : t.spans)
    if (s.coordinate == 0 && counts(s)) first[s.actor] = std::min(first[s.actor], s.start);
  const auto is_before = [&](const Span& s) { return s.start < first[s.actor]; };
  std::set<std::string> awaited;
  for (const Span& s : t.spans)
    if (s.lane == Lane::compute && !counts(s) && !is_before(s) && !s.waited.empty()) awaited.insert(s.label);
  std::vector<Edges> all(t.actors, Edges{{}, {{}}});
  std::vector<std::set<std::string>> seen(all.size());
  for (const Span& s : t.spans) {
    if (s.lane != Lane::compute || s.coordinate > 0 || counts(s)) continue;
    Edges& e = all[s.actor];
    if (is_before(s)) {
      e.before.push_back(s);
      continue;
    }
    if (awaited.contains(s.label) && seen[s.actor].insert(s.label).second) e.after.emplace_back();
    e.after.back().push_back(s);
  }
  return all;
}

double length(const std::vector<Span>& spans) {
  double sum = 0;
  for (const Span& s : spans) sum += s.end - s.start;
  return sum;
}

// How much of an action's time was spent waiting in the middle of it, on average over its microbatches and ranks.
IdVector<StageId, PerPhase<double>> mean_waiting(const Schedule& s, const Timeline& t) {
  IdVector<StageId, PerPhase<double>> sums(s.stages);
  IdVector<StageId, PerPhase<std::set<Action>>> actions(s.stages);
  for (const Span& span : t.spans) {
    if (!counts(span) || !sums.has(span.action->stage)) continue;
    sums[span.action->stage][span.action->phase] += span.waiting;
    actions[span.action->stage][span.action->phase].insert(*span.action);
  }
  for (const StageId stage : sums.ids())
    for (const Phase p : {Phase::F, Phase::B, Phase::I, Phase::W, Phase::R})
      if (const std::size_t count = actions[stage][p].size(); count > 0) sums[stage][p] /= count * t.ranks;
  return sums;
}

}  // namespace

StageCosts measured_costs(const Schedule& s, const Timeline& t) {
  struct Sum {
    double seconds = 0;
    std::map<Action, bool> actions;
  };
  IdVector<StageId, PerPhase<Sum>> sums(s.stages);
  IdVector<StageId, double> halves(sums.size(), 0);  // of the B's, until I is done
  for (const Span& span : t.spans) {
    if (!counts(span) || !sums.has(span.action->stage)) continue;
    Sum& sum = sums[span.action->stage][span.action->phase];
    sum.seconds += span.end - span.start;
    sum.actions[*span.action] = true;
    if (span.halfway) halves[span.action->stage] += *span.halfway - span.start;
  }
  StageCosts costs;
  for (const StageId stage : sums.ids()) {
    const auto& of = sums[stage];
    const auto mean = [&](Phase p) {
      const Sum& sum = of[p];
      return sum.actions.empty() ? 0 : sum.seconds / (sum.actions.size() * t.ranks);
    };
    StageCost c;
    c.F = mean(Phase::F);
    c.I = mean(Phase::I);
    c.W = mean(Phase::W);
    if (const Sum& b = of[Phase::B]; !b.actions.empty()) {
      c.B = mean(Phase::B);
      c.I = halves[stage] > 0 ? halves[stage] / (b.actions.size() * t.ranks) : *c.B;
    }
    if (!of[Phase::R].actions.empty()) c.R = mean(Phase::R);
    costs.push_back(c);
  }
  return costs;
}

Prediction replay(const Schedule& s, const Timeline& measured, const SimulateOptions& options) {
  SimulateOptions o = options;
  o.stages = measured_costs(s, measured);
  for (const StageId i : ids_until<StageId>(std::min(o.stages.size(), options.stages.size()))) {
    o.stages[i].activation_bytes = options.stages[i].activation_bytes;
    o.stages[i].kept_bytes = options.stages[i].kept_bytes;
    o.stages[i].weight_bytes = options.stages[i].weight_bytes;
    o.stages[i].message_bytes = options.stages[i].message_bytes;
  }
  Prediction p = simulate(s, o);
  const IdVector<StageId, PerPhase<double>> waiting = mean_waiting(s, measured);
  for (Span& span : p.timeline.spans)
    if (counts(span)) span.waiting = waiting[span.action->stage][span.action->phase];
  const std::vector<Edges> edges = edges_of(measured);
  double before = 0;
  for (const Edges& e : edges) before = std::max(before, length(e.before));
  std::vector<double> end(edges.size(), before);
  for (Span& span : p.timeline.spans) {
    span.start += before;
    span.end += before;
    if (span.lane == Lane::compute) end[span.actor] = std::max(end[span.actor], span.end);
  }
  for (auto& curve : p.timeline.memory)
    for (auto& point : curve) point.first += before;
  const auto put = [&](const std::vector<Span>& spans, double at) {
    for (Span span : spans) {
      const double seconds = span.end - span.start;
      span.start = at;
      span.end = at += seconds;
      span.waited.clear();
      p.timeline.spans.push_back(std::move(span));
    }
  };
  std::size_t parts = 0;
  for (std::size_t a = 0; a < edges.size(); ++a) {
    put(edges[a].before, before - length(edges[a].before));
    parts = std::max(parts, edges[a].after.size());
  }
  for (std::size_t part = 0; part < parts; ++part) {
    const double all = end.empty() ? 0 : *std::max_element(end.begin(), end.end());
    for (std::size_t a = 0; a < edges.size(); ++a) {
      if (part >= edges[a].after.size()) continue;
      if (part > 0) end[a] = all;
      put(edges[a].after[part], end[a]);
      end[a] += length(edges[a].after[part]);
    }
  }
  std::stable_sort(p.timeline.spans.begin(), p.timeline.spans.end(), [](const Span& a, const Span& b) {
    return a.actor != b.actor ? a.actor < b.actor : a.start < b.start;
  });
  p.makespan = p.timeline.makespan();
  p.bubble = p.timeline.bubble();
  return p;
}

}  // namespace stretto
