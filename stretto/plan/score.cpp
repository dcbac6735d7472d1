// Exactly the configurations that are asked for.
#include <fmt/format.h>

#include <set>

#include "stretto/plan/inner/prediction.h"
#include "stretto/plan/search.h"

namespace stretto {

std::vector<Planned> score(const PlanProblem& p, const std::vector<RunKeys>& all, const PlanOptions& o) {
  constexpr std::size_t few = 60, some = 64;
  Predictor predictor(p, o.each);
  std::vector<Planned> results(all.size());
  std::vector<std::size_t> legal;
  std::set<Variant> exact, plain;
  for (std::size_t i = 0; i < all.size(); ++i) {
    results[i].keys = all[i];
    if (all[i].ranks() != p.ranks)
      results[i].refused = fmt::format("its mesh has {} ranks, not {}", all[i].ranks(), p.ranks);
    else if (std::string fault = mesh_fault(p, all[i]); !fault.empty())
      results[i].refused = std::move(fault);
    else if (std::string other = keys_fault(p, all[i]); !other.empty())
      results[i].refused = std::move(other);
    else
      legal.push_back(i), exact.insert(variant_of(p, all[i])), plain.insert(without_data(variant_of(p, all[i])));
  }
  if (p.graph || (all.size() <= few && !o.quick)) {
    std::vector<RunKeys> keys;
    for (const std::size_t i : legal) keys.push_back(all[i]);
    const std::vector<Planned> compiled = predictor.by_program(keys);
    for (std::size_t n = 0; n < legal.size(); ++n) results[legal[n]] = compiled[n];
    return results;
  }
  const std::set<Variant>& needed = exact.size() <= some ? exact : plain;
  predictor.learn({needed.begin(), needed.end()});
  std::vector<const RunKeys*> played;
  for (const std::size_t i : legal) played.push_back(&all[i]);
  predictor.build_played(played);
  for (const std::size_t i : legal)
    results[i] = exact.size() <= some || !all[i].recompute_each.empty() ? predictor.by_schedule(all[i])
                                                                        : predictor.by_stages(all[i], true);
  return results;
}

double mfu(const PlanProblem& p, double flops, double seconds) {
  return flops / (seconds * p.ranks * p.cluster.cluster.machine.peak(half(p)));
}

}  // namespace stretto
