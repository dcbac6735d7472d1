#include "stretto/cost/collective.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace stretto {
namespace {

double phases(const CollectiveShape& s) { return s.kind == CollectiveKind::reduce ? 2 : 1; }
// Of rows that come as they come: as many as in the mean, for which the smaller side is made.
double whole_bytes(const CollectiveShape& s) {
  const i64 elements = s.rows ? std::min(s.operand(), s.result()) : std::max(s.operand(), s.result());
  return double(elements) * double(size_of(s.dtype));
}
double phase_seconds(double members, double whole, const Link& l) {
  return (members - 1) * l.latency + (members - 1) / members * whole / l.bandwidth;
}
// The slowest place of a ring: within a node, or between two, where a node's members send side by side. In an exchange
// only what is for other nodes goes there.
double one_ring_seconds(const CollectiveShape& s, const Cluster& c, NodeSpread on) {
  if (s.members < 2) return 0;
  const bool exchange = s.exchanges();
  const double whole = whole_bytes(s), sent = (s.members - 1.0) / s.members * whole;
  const double latency = (on.nodes > 1 ? c.between.latency : c.inside.latency) * std::log2(s.members);
  const double inside = on.most > 1 ? sent / c.inside.bandwidth : 0;
  double between = 0;
  if (on.nodes > 1)
    between = exchange ? (1.0 - double(on.most) / s.members) * whole / c.between.bandwidth
                       : sent / (on.most * c.between.bandwidth);
  return phases(s) * (latency + std::max(inside, between));
}

}  // namespace

double collective_bytes(const CollectiveShape& s) { return phases(s) * (s.members - 1) / s.members * whole_bytes(s); }

double collective_seconds(const CollectiveShape& s, const Link& l) {
  return phases(s) * phase_seconds(s.members, whole_bytes(s), l);
}

NodeSpread spread_of(const Cluster& c, std::span<const int> ranks) {
  std::map<int, int> on_node;
  for (int r : ranks) ++on_node[r / c.ranks_per_node];
  NodeSpread spread{.most = 0, .nodes = static_cast<int>(on_node.size())};
  for (const auto& [node, members] : on_node) spread.most = std::max(spread.most, members);
  return spread;
}

double collective_seconds(const CollectiveShape& s, const Cluster& c, NodeSpread on) {
  if (c.one_ring) return one_ring_seconds(s, c, on);
  // In an exchange everything has to reach its node; otherwise each of a node's members speaks for its share.
  const double whole = whole_bytes(s), share = s.exchanges() ? whole : whole / on.most;
  return phases(s) * (phase_seconds(on.most, whole, c.inside) + phase_seconds(on.nodes, share, c.between));
}

double collective_seconds(const CollectiveShape& s, const Cluster& c, std::span<const int> ranks) {
  STRETTO_ASSERT(ranks.size() == std::size_t(s.members));
  return collective_seconds(s, c, spread_of(c, ranks));
}

}  // namespace stretto
