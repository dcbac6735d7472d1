// How tokens get to experts that ranks share, by what it takes: gathered once for all experts of a rank, or every row
// sent to the expert that it names.
//
//   const ExpertRowsSeconds s = expert_rows_seconds({.tokens = 8192, .width = 1024, .top_k = 4}, group, cluster);
//   if (s.exchange_is_faster()) ...
#pragma once
#include <optional>
#include <string>

#include "stretto/compile/compile.h"
#include "stretto/cost/collective.h"

namespace stretto {

// The ranks that share one set of experts.
struct ExpertGroup {
  int ranks = 1;
  NodeSpread nodes = {};
};

// Of one layer, forward and back.
struct ExpertRowsSeconds {
  double gather = 0, exchange = 0;
  // An exchange copies rows into the order of experts and back, which is not counted: it must gain more than that.
  bool exchange_is_faster() const { return exchange < 0.95 * gather; }
};

// `tokens` of the traffic are those of one rank here.
ExpertRowsSeconds expert_rows_seconds(const ExpertTraffic&, const ExpertGroup&, const Cluster&);

// What `expert_rows = "auto"` does on the cluster of `Parallel`; none: there is none, and bytes are counted.
ExchangesRows exchanges_by_cost(const Parallel&);

// "gathered: 2.7 ms per layer, exchanged it would be 3.4 ms"; none: no layer has experts that ranks share.
std::optional<std::string> expert_rows_reason(const Compiled&);

}  // namespace stretto
