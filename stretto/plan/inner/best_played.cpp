#include "stretto/plan/inner/best_played.h"

#include <algorithm>

#include "stretto/plan/inner/better_stages.h"
#include "stretto/plan/inner/programs.h"

namespace stretto {
namespace {

constexpr std::size_t best = 20;             // whose turns are ordered
constexpr std::size_t at_once = 16;          // whatever the number of threads
constexpr std::size_t most_turns = 400'000;  // of all of them, about

// The best whose turns are not ordered yet.
std::vector<Planned*> next(std::vector<Planned>& played, double room, Objective objective) {
  std::vector<Planned*> these;
  std::size_t place = 0;
  for (const Planned* x : by_cost(played, objective)) {
    if (x->bytes > room) continue;
    if (place++ == best || these.size() == at_once) break;
    if (!x->turns) these.push_back(&played[x - played.data()]);
  }
  return these;
}

}  // namespace

std::vector<const Planned*> by_cost(const std::vector<Planned>& played, Objective objective) {
  const auto cost = [&](const Planned* x) { return cost_of(objective, x->seconds, x->bytes); };
  std::vector<const Planned*> order;
  for (const Planned& x : played) order.push_back(&x);
  std::stable_sort(order.begin(), order.end(), [&](const Planned* a, const Planned* b) {
    return cost(a) != cost(b) ? cost(a) < cost(b) : a->keys < b->keys;
  });
  return order;
}

void judge_by_turns(Predictor& predictor, std::vector<Planned>& played, double room, const PlanOptions& o) {
  for (std::size_t turns = 0; turns < most_turns;) {
    const std::vector<Planned*> these = next(played, room, o.objective);
    if (these.empty()) return;
    if (o.progress) o.progress("turns", double(turns), double(most_turns));
    std::vector<RunKeys> keys;
    for (std::size_t i = 0; i < these.size() && turns < most_turns; ++i) {
      keys.push_back(these[i]->keys);
      turns += predictor.shapes().of(keys.back()).nodes();
    }
    std::vector<Planned> better = predictor.by_turns(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) *these[i] = std::move(better[i]);
  }
}

void better_cuts(const PlanProblem& p, Predictor& predictor, std::vector<Planned>& played, double room,
                 const PlanOptions& o) {
  std::vector<Planned*> these;
  std::vector<Ready> ready;
  for (const Planned* x : by_cost(played, o.objective)) {
    if (std::ssize(these) == o.compiled) break;
    if (x->bytes > room || x->keys.pipe == 1) continue;
    these.push_back(&played[x - played.data()]);
    ready.push_back(predictor.ready(x->keys));
  }
  std::vector<RunKeys> keys(these.size());
  predictor.each_schedule(ready, [&](std::size_t i) {
    const Ready& r = ready[i];  // its facts and its shape stay: recompute is the same for all stages
    const auto play = [&](const RunKeys& k) { return predictor.by_schedule(Ready{k, r.facts, r.shape}); };
    keys[i] = with_better_stages(p, r, play, room).keys;
  });
  std::vector<Planned> better = predictor.by_turns(keys);
  for (std::size_t i = 0; i < these.size(); ++i)
    if (better[i].bytes <= room && better[i].seconds < these[i]->seconds) *these[i] = std::move(better[i]);
}

}  // namespace stretto
