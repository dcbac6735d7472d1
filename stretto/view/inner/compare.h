// How two timelines differ, kind by kind: what a prediction got wrong, or what another schedule changes.
//
//   for (const KindDifference& d : compare(simulated, measured)) fmt::print("{} {:+.1f}%\n", d.kind, d.percent());
#pragma once
#include <string>
#include <vector>

#include "stretto/schedule/timeline.h"

namespace stretto {

struct KindDifference {
  std::string kind;  // "F", ..., then "messages", "collectives", "other work"; "idle" last
  int count = 0, other_count = 0;
  double total = 0, other_total = 0;       // time, over all actors; of an actor's ranks the mean
  double other_least = 0, other_most = 0;  // the shortest and the longest of the other
  double mean() const { return count ? total / count : 0; }
  double other_mean() const { return other_count ? other_total / other_count : 0; }
  double percent() const;  // how much longer one of the other takes than one of the first; 0 where either has none
};

// Only kinds that occur in either. "idle" counts actors: time within the makespan not spent in compute spans.
std::vector<KindDifference> compare(const Timeline& first, const Timeline& other);

}  // namespace stretto
