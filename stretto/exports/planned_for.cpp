#include "stretto/exports/planned_for.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "stretto/balance/even_stages.h"

namespace stretto {
namespace {

constexpr std::size_t most_tried = 30;  // with their cuts

std::vector<int> even_pieces(const PlanProblem& p, int stages) {
  return even_stages(std::vector<double>(p.pieces(), 1), stages);
}

// As many layers in each stage; the embedding is before the first and the head after the last.
std::vector<int> equal_layers(i64 layers, int stages) {
  std::vector<int> pieces(stages, int(2 * layers / stages));
  ++pieces.front(), ++pieces.back();
  return pieces;
}

std::vector<RunKeys> with_whole_layers(const Target& t, const PlanProblem& p, RunKeys k) {
  if (k.pipe == 1) return k.stages = {}, std::vector{k};
  std::vector<std::vector<int>> cuts{equal_layers(p.model.layers, k.stage_count())};
  if (!t.whole_stages)
    cuts = nearest_whole(k.stages.empty() ? even_pieces(p, k.stage_count()) : k.stages, p.model.layers);
  std::vector<RunKeys> all;
  for (std::vector<int>& stages : cuts) k.stages = std::move(stages), all.push_back(k);
  return all;
}

}  // namespace

Planned best_for(const Target& t, const PlanProblem& p, const Plan& plan, const PlanOptions& o) {
  std::vector<RunKeys> candidates;
  std::set<RunKeys> known;
  for (const std::vector<Planned>* list : {&plan.best, &plan.as_good})
    for (const Planned& x : *list) {
      if (!x.keys.recompute_each.empty() || !has_counterpart(t, p.model, x.keys)) continue;
      for (RunKeys& k : with_whole_layers(t, p, x.keys))
        if (candidates.size() < most_tried && known.insert(k).second) candidates.push_back(std::move(k));
    }
  const std::vector<Planned> scored = score(p, candidates, o);
  const Planned* best = nullptr;
  for (const Planned& x : scored) {
    if (!x.refused.empty() || x.bytes > plan.capacity) continue;
    const bool less = best && (o.objective == Objective::memory ? x.bytes < best->bytes : x.seconds < best->seconds);
    if (!best || less) best = &x;
  }
  if (!best)
    throw Error("--for " + std::string(t.name), "of the {} best configurations none fits when stages take whole layers",
                plan.best.size())
        .hint("--top {} looks at more of them; --plan.memory says how much of a rank may be planned",
              2 * std::max(10, o.top));
  return *best;
}

PlanToWrite plan_to_write(const PlanProblem& p, const RunConfig& run, const RunKeys& k) {
  return {.model = p.model,
          .batch = p.batch,
          .dtype = run.train.dtype.kept,
          .clip = run.train.clip,
          .keys = k,
          .stages = k.pipe > 1 ? whole_layers(k.stages, p.model.layers) : std::vector<StageLayers>()};
}

}  // namespace stretto
