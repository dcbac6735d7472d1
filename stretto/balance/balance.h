// Which pieces a stage takes.
//
//   Balance b = balance({.seconds = {seconds_per_piece}, .actor_of = schedule.actor_of});
//   fmt::print("the busiest actor works {} s a microbatch\n", b.largest);     // b.stage_of: per piece, its stage
//
// A stage is a run of neighbouring pieces, at least one. An actor's load is the sum over the stages that its placement
// gives it, in all pipes, and their messages. The largest load is made as small as possible, exactly, for placements
// with one stage per actor and for those that fold (stage s beside the s-th last: v-shaped and bidirectional ones).
// For others, and where the exact search would take too long, a search improves the cuts until no shift helps and then
// tries to prove the result; `bound` is what no cut can be below, and `exact` says that nothing is better.
#pragma once
#include <vector>

#include "stretto/schedule/schedule.h"

namespace stretto {

struct BalanceProblem {
  std::vector<std::vector<double>> seconds = {};  // per kind of stage: of each piece
  std::vector<int> kind = {};                     // per stage: row of `seconds`; empty: all the first
  std::vector<double> message = {};  // per boundary: what a cut there costs both neighbours; empty: nothing
  StagePlacement actor_of = {};
};
struct Balance {
  std::vector<int> stage_of;  // per piece
  double largest = 0;         // load of the busiest actor, over all pipes
  double bound = 0;           // no cut is below this
  bool exact = false;         // `largest` cannot be improved
};
// More stages than pieces are refused.
Balance balance(const BalanceProblem&);

// Stages by the number of pieces each takes: they must add up.
std::vector<int> cut(const std::vector<int>& pieces_per_stage, int pieces);

}  // namespace stretto
