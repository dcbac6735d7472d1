#include "stretto/step/cost.h"

#include <algorithm>

namespace stretto {

Cost task_cost(const Task& t) {
  Cost cost;
  for (const Node& n : t.body->nodes) cost += n.op->cost({*t.body, n});
  return cost;
}

std::vector<Crossing> crossings(const Step& s) {
  std::vector<Crossing> all(std::max(0, s.pieces / s.segments - 1));
  for (const CrossValue& v : s.values) {
    const PieceId made = *s.tasks[v.producer].piece;
    PieceId lowest = made, highest = made;
    for (TaskId c : v.consumers) {
      lowest = std::min(lowest, *s.tasks[c].piece);
      highest = std::max(highest, *s.tasks[c].piece);
    }
    const int here = made.value / s.segments;
    for (int b = here; b < highest.value / s.segments; ++b) all[b].forward += v.bytes;
    for (int b = lowest.value / s.segments; b < here; ++b) all[b].backward += v.bytes;
  }
  return all;
}

}  // namespace stretto
