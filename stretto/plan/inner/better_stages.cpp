#include "stretto/plan/inner/better_stages.h"

#include <algorithm>

namespace stretto {
namespace {

constexpr std::ptrdiff_t most_nodes = 3'000'000;  // of all plays together
constexpr std::ptrdiff_t most_moves = 200;
constexpr double worth = 1 - 1e-4;  // a step that saves less is none

std::ptrdiff_t plays(Shape& shape) {
  return std::min(most_moves, most_nodes / std::max<std::ptrdiff_t>(1, shape.nodes()));
}

// All configurations that are one step away: first a piece in either direction over every cut.
class Neighbours {
 public:
  Neighbours(const RunKeys& k, bool cuts_given) : cuts_(cuts_given ? 0 : 2 * (k.stage_count() - 1)) {
    if (k.recompute_each.empty()) return;
    stages_ = k.stage_count();
    less_ = *std::ranges::find_if(k.recompute_each, [&](Recompute r) { return r != k.recompute; });
  }

  int count() const { return cuts_ + stages_; }
  std::optional<RunKeys> of(const RunKeys& k, int at) const {
    RunKeys other = k;
    if (at < cuts_) {
      const int low = at / 2, from = low + at % 2, to = low + 1 - at % 2;
      if (k.stages[from] < 2) return std::nullopt;
      --other.stages[from], ++other.stages[to];
      return other;
    }
    if (k.recompute_each.empty()) return std::nullopt;  // they have become alike
    std::vector<Recompute> each = k.recompute_each;
    Recompute& r = each[at - cuts_];
    r = r == k.recompute ? less_ : k.recompute;
    other.set_recompute(each);
    return other;
  }

 private:
  int cuts_ = 0, stages_ = 0;
  Recompute less_ = Recompute::none;
};

}  // namespace

Planned with_better_stages(const PlanProblem& p, const Ready& first, const PlayKeys& play, double bytes) {
  Planned best = play(first.keys);
  if (best.keys.stage_count() < 2) return best;
  std::ptrdiff_t left = plays(*first.shape);
  const Neighbours neighbours(best.keys, !p.parallel.stages.empty());
  // Whole sweeps over all neighbours, until one of them changes nothing.
  for (bool moved = true; moved && left > 0;) {
    moved = false;
    for (int at = 0; at < neighbours.count() && left > 0; ++at) {
      const std::optional<RunKeys> k = neighbours.of(best.keys, at);
      if (!k) continue;
      --left;
      Planned x = play(*k);
      if (!x.refused.empty() || x.seconds >= worth * best.seconds || x.bytes > bytes) continue;
      best = std::move(x);
      moved = true;
    }
  }
  return best;
}

}  // namespace stretto
