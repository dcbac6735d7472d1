#include "stretto/stage/balance.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "stretto/stage/recompute.h"

namespace stretto {

std::string_view name_of(Recompute r) {
  constexpr std::string_view names[] = {"none", "full", "selective"};
  return names[std::size_t(r)];
}

Cost task_cost(const Task& t) {
  Cost cost;
  for (const Node& n : t.body->nodes) cost += n.op->cost({*t.body, n});
  return cost;
}

std::vector<Cost> piece_costs(const Step& s) {
  std::vector<Cost> costs(static_cast<std::size_t>(s.pieces));
  for (const Task& t : s.tasks) {
    if (t.part < Part::F || t.part > Part::W) continue;
    costs[t.piece] += task_cost(t);
  }
  return costs;
}

std::vector<int> balance(const std::vector<double>& seconds, int stages) {
  const int n = int(seconds.size());
  if (stages > n)
    throw Error("stages", "{} stages are asked for and the model has {} pieces between its boundaries", stages, n)
        .hint("use at most {} stages, more layers, or more boundaries", n);
  std::vector<double> before(std::size_t(n) + 1, 0);
  std::partial_sum(seconds.begin(), seconds.end(), before.begin() + 1);
  // best[k][i]: the most expensive of k stages over the first i pieces, at its least.
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(std::size_t(stages) + 1, std::vector<double>(std::size_t(n) + 1, never));
  std::vector<std::vector<int>> last(std::size_t(stages) + 1, std::vector<int>(std::size_t(n) + 1, 0));
  best[0][0] = 0;
  for (int k = 1; k <= stages; ++k)
    for (int i = k; i <= n; ++i)
      for (int j = k - 1; j < i; ++j) {
        const double cost =
            std::max(best[std::size_t(k - 1)][std::size_t(j)], before[std::size_t(i)] - before[std::size_t(j)]);
        if (cost < best[std::size_t(k)][std::size_t(i)])
          best[std::size_t(k)][std::size_t(i)] = cost, last[std::size_t(k)][std::size_t(i)] = j;
      }
  std::vector<int> stage_of(std::size_t(n), 0);
  for (int k = stages, i = n; k > 0; i = last[std::size_t(k)][std::size_t(i)], --k)
    for (int j = last[std::size_t(k)][std::size_t(i)]; j < i; ++j) stage_of[std::size_t(j)] = k - 1;
  return stage_of;
}

std::vector<int> cut(const std::vector<int>& pieces_per_stage, int pieces) {
  std::vector<int> stage_of;
  for (std::size_t s = 0; s < pieces_per_stage.size(); ++s) {
    if (pieces_per_stage[s] < 1)
      throw Error("stages", "stage {} takes {} pieces", s, pieces_per_stage[s]).hint("every stage takes at least one");
    stage_of.insert(stage_of.end(), std::size_t(pieces_per_stage[s]), int(s));
  }
  if (int(stage_of.size()) != pieces)
    throw Error("stages", "the stages take {} pieces and the model has {}", stage_of.size(), pieces)
        .hint("make the numbers add up to {}", pieces);
  return stage_of;
}

}  // namespace stretto
