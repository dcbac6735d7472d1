#include "stretto/cost/machine.h"

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto {

double seconds(const Machine& m, double flops, double bytes, bool of_bf16) {
  return std::max(flops / m.rate(of_bf16), bytes / m.memory_bandwidth);
}

Cluster placed(Cluster c, int ranks) {
  if (!c.one_ring || ranks <= c.ranks_per_node || ranks % c.ranks_per_node == 0) return c;
  for (int each = c.ranks_per_node; 2 * each > c.ranks_per_node; --each)
    if (ranks % each == 0) {
      c.ranks_per_node = each;
      break;
    }
  return c;
}

Link link(const Cluster& c, int from, int to) {
  if (c.ranks_per_node < 1) throw Error("cluster", "{} ranks per node", c.ranks_per_node).hint("give at least 1");
  if (from < 0 || to < 0)
    throw Error("cluster", "no link from rank {} to rank {}", from, to).hint("ranks count from 0");
  if (from == to) return {};
  return from / c.ranks_per_node == to / c.ranks_per_node ? c.inside : c.between;
}

}  // namespace stretto
