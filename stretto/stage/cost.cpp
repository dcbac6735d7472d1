#include "stretto/stage/cost.h"

#include <algorithm>

namespace stretto {

Cost task_cost(const Task& t) {
  Cost cost;
  for (const Node& n : t.body->nodes) cost += n.op->cost({*t.body, n});
  return cost;
}

std::vector<Crossing> crossings(const Step& s) {
  std::vector<Crossing> all(std::size_t(std::max(0, s.pieces - 1)));
  for (const CrossValue& v : s.values) {
    const int made = s.tasks[v.producer].piece;
    int lowest = made, highest = made;
    for (std::uint32_t c : v.consumers) {
      lowest = std::min<int>(lowest, s.tasks[c].piece);
      highest = std::max<int>(highest, s.tasks[c].piece);
    }
    for (int b = made; b < highest; ++b) all[std::size_t(b)].forward += double(v.bytes);
    for (int b = lowest; b < made; ++b) all[std::size_t(b)].backward += double(v.bytes);
  }
  return all;
}

}  // namespace stretto
