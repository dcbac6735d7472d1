// What sharing a batch over the data axis adds to facts without it, in closed form: sums of gradients, gathers of
// parameters, states that are cut.
//
//   DataLinks links(cluster);
//   StageFacts f = with_data(problem, facts_without, {.data = 64, .zero = 1, ...}, links);
#pragma once
#include <map>
#include <tuple>

#include "stretto/ir/collective.h"
#include "stretto/plan/inner/facts.h"

namespace stretto {

// The time of a collective over the data axis as a link: a latency, and seconds per byte.
class DataLinks {
 public:
  explicit DataLinks(const Cluster& c) : cluster_(c) {}
  const Link& of(const Variant&, CollectiveKind);

 private:
  const Cluster& cluster_;
  std::map<std::tuple<int, int, CollectiveKind>, Link> known_;  // by members, distance between them, kind
};

StageFacts with_data(const PlanProblem&, StageFacts, const Variant&, DataLinks&);

}  // namespace stretto
