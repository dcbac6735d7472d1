#include "stretto/program/overlap/work_times.h"

#include <algorithm>
#include <set>

namespace stretto {
namespace {

std::vector<NodeSpread> spreads_of(const Program& p, const Cluster& c, const std::vector<std::string>& axes,
                                   ActorId actor) {
  std::set<NodeSpread> all;
  for (int k = 0; k < p.ranks_per_actor(); ++k) {
    if (block_of(p.mesh, coordinates_of(p.mesh, k), axes) != 0) continue;
    std::vector<int> ranks = group_of(p.mesh, k, axes);
    for (int& r : ranks) r = p.rank_of(actor, r);
    all.insert(spread_of(c, ranks));
  }
  return {all.begin(), all.end()};
}

}  // namespace

double WorkTimes::collective(const CollectiveShape& s, ActorId actor) {
  const auto [it, fresh] = spreads_.try_emplace({s.axes, actor});
  if (fresh) it->second = spreads_of(p_, c_, s.axes, actor);
  double most = 0;
  for (NodeSpread on : it->second) most = std::max(most, collective_seconds(s, c_, on));
  return most;
}

const IdVector<CallId, double>& WorkTimes::calls(const Calls& body, ActorId actor) {
  const auto [it, fresh] = calls_.try_emplace({&body, actor});
  if (fresh)
    for (CallId c : body.calls.ids()) {
      const Node& n = body.graph.node(body.calls[c].node);
      it->second.push_back(n.op->collective ? collective(shape_of(body.graph, n, p_.mesh), actor)
                                            : seconds_of(body, c, c_.machine));
    }
  return it->second;
}

}  // namespace stretto
