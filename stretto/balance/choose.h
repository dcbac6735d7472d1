// Cuts for the schedule at hand: candidates are played by the simulator, and the fastest is taken.
//
//   ChosenCuts c = choose_cuts({.pieces = {seconds_per_piece}, .link = link}, valid(schedule));
//   fmt::print("{} s a step, {} s with equally many pieces in every stage\n", c.seconds, c.even_seconds);
//
// The busiest actor alone does not tell how long a step takes: with several stages per actor, one long stage delays all
// that come after it. So cuts that balance actors (balance.h), cuts that balance stages and even ones are starting
// points; from each, single pieces move from stage to stage as long as that makes the step shorter. The result is never
// slower than an even cut. The number of plays is limited by the schedule's size, so that compiling stays linear.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "stretto/cost/machine.h"
#include "stretto/schedule/validate.h"

namespace stretto {

struct PieceTimes {
  double F = 0, R = 0, I = 0, W = 0;  // seconds of one microbatch
  double update = 0;                  // seconds at the end of a step
  double microbatch() const { return F + R + I + W; }
  PieceTimes& operator+=(const PieceTimes& t) {
    return F += t.F, R += t.R, I += t.I, W += t.W, update += t.update, *this;
  }
};

struct CutProblem {
  std::vector<std::vector<PieceTimes>> pieces = {};  // per kind of stage (what it recomputes): of each piece
  std::vector<int> kind = {};                        // per stage: which of them; empty: all the first
  std::vector<double> bytes = {};  // per boundary: what F sends over a cut there in a microbatch; empty: nothing
  Link link = {};                  // between actors
  std::vector<int> first = {};     // pieces per stage of one more starting point; empty: none
  // May stages take so many pieces each? Empty: any may.
  std::function<bool(const std::vector<int>& pieces_per_stage)> allowed = {};
};

struct ChosenCuts {
  std::vector<int> stage_of;  // per piece
  double seconds = 0;         // of a step; infinite: no cut that was tried is allowed
  double even_seconds = 0;    // with equally many pieces in every stage, as far as that goes
};

// More stages than pieces are refused. A cut that is not allowed may be a starting point. `most_actions`: how many all
// plays together may have; a few are played in any case. The default is less than a tenth of a second.
ChosenCuts choose_cuts(const CutProblem&, const Validated<Schedule>&, std::ptrdiff_t most_actions = 600'000);

}  // namespace stretto
