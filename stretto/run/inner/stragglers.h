// Names ranks that take longer for the same work than others.
//
//   Stragglers stragglers(ranks, ranks_per_actor);
//   for (const std::string& line : stragglers.step(n, seconds_of_work)) console.say(line);
//   // "straggler: rank 3 +18% since step 40"
//
// The ranks of an actor have the same work: one is compared with the median of the others. Where an actor is one rank,
// its work is its own, and it is compared with how long that took at first, as far as the others have not changed
// likewise.
#pragma once
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/id.h"

namespace stretto {

class Stragglers {
 public:
  Stragglers(int ranks, int ranks_per_actor) : each_(ranks_per_actor), state_(ranks) {}

  // Seconds that every rank has worked in this step; lines for those that have just become stragglers.
  std::vector<std::string> step(i64 step, std::span<const double> worked);

 private:
  struct Rank {
    double first = 0;   // a step's work, when the run began
    i64 since = 0;      // the first of the steps without a break in which it has been behind; 0: it is not
    bool told = false;  // that it is behind
  };
  // By which share a rank has worked longer than it should have.
  double more(int rank, std::span<const double> worked) const;

  int each_;
  std::vector<Rank> state_;
  std::deque<std::vector<double>> last_;  // steps
};

}  // namespace stretto
