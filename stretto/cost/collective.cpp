#include "stretto/cost/collective.h"

#include <algorithm>
#include <map>

namespace stretto {
namespace {

double phases(const CollectiveShape& s) { return s.kind == CollectiveKind::reduce ? 2 : 1; }
double whole_bytes(const CollectiveShape& s) {
  return double(std::max(s.operand(), s.result())) * double(size_of(s.dtype));
}
double phase_seconds(double members, double whole, const Link& l) {
  return (members - 1) * l.latency + (members - 1) / members * whole / l.bandwidth;
}

}  // namespace

double collective_bytes(const CollectiveShape& s) { return phases(s) * (s.members - 1) / s.members * whole_bytes(s); }

double collective_seconds(const CollectiveShape& s, const Link& l) {
  return phases(s) * phase_seconds(s.members, whole_bytes(s), l);
}

double collective_seconds(const CollectiveShape& s, const Cluster& c, std::span<const int> ranks) {
  STRETTO_ASSERT(ranks.size() == std::size_t(s.members));
  std::map<int, int> on_node;
  for (int r : ranks) ++on_node[r / c.ranks_per_node];
  int most = 0;
  for (const auto& [node, members] : on_node) most = std::max(most, members);
  // In an exchange everything has to reach its node; otherwise each of a node's members speaks for its share.
  const double whole = whole_bytes(s), share = s.kind == CollectiveKind::exchange ? whole : whole / most;
  return phases(s) * (phase_seconds(most, whole, c.inside) + phase_seconds(double(on_node.size()), share, c.between));
}

}  // namespace stretto
