// What the work of a program lasts where its ranks lie, by the cost model.
//
//   WorkTimes times(program, cluster);
//   double t = times.calls(body, actor)[call], u = times.message(route);
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stretto/cost/collective.h"
#include "stretto/fuse/cost.h"
#include "stretto/program/program.h"

namespace stretto {

class WorkTimes {
 public:
  WorkTimes(const Program& p, const Cluster& c) : p_(p), c_(placed(c, p.ranks())) {}  // the program must outlive it

  // Of every call of a body, found once. A collective takes as long as in the slowest of the actor's groups.
  const IdVector<CallId, double>& calls(const Calls& body, ActorId);
  double collective(const CollectiveShape&, ActorId);
  double message(const Route& r) const {
    return link(c_, p_.rank_of(r.source, 0), p_.rank_of(r.target, 0)).seconds(double(r.bytes));
  }

 private:
  const Program& p_;
  const Cluster c_;
  // How groups of one kind lie on nodes, found once: a few different ways at most.
  std::map<std::pair<std::vector<std::string>, ActorId>, std::vector<NodeSpread>> spreads_;
  std::map<std::pair<const Calls*, ActorId>, IdVector<CallId, double>> calls_;
};

}  // namespace stretto
