// Predicts what a schedule will do: who runs what when, how long a step takes, how much memory it holds.
//
//   Prediction p = simulate(build_schedule("1f1b", {.actors = 4, .microbatches = 8}));
//   // p.makespan == 30, p.peak == {4, 3, 2, 1}
//
// Actors run their rows in order, as the runtime does: an action starts when its actor is free and its message is
// there; a message leaves when what makes it has ended, a B's gradient when its I has. (Where B is one operation, as in
// most papers, give I all of its time and W none.) Members of an overlap group follow each other: what a group
// gains is collectives that run beside its other member, and a schedule alone has none (predict.h plays them).
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "stretto/cost/machine.h"
#include "stretto/cost/times.h"
#include "stretto/schedule/schedule.h"
#include "stretto/schedule/timeline.h"
#include "stretto/schedule/validate.h"

namespace stretto {

// One stage as it is, for one microbatch: nothing is divided by chunks.
struct StageCost {
  double F = 1, I = 1, W = 1;
  std::optional<double> B = {};  // absent: I + W
  std::optional<double> R = {};  // given: recompute is implied before I or B; absent: an R in the rows takes F's time
  double activation_bytes = 0;   // live from F (under recompute: from R) until the end of W or B
  double kept_bytes = 0;         // what F keeps under recompute: the stage's inputs
  double weight_bytes = 0;
  std::vector<double> shares = {};  // of its times, per segment of its sequences; empty: equal ones
  double message_bytes = 0;         // what F sends to the next stage; the gradient that comes back is as large
};

using StageCosts = IdVector<StageId, StageCost>;

struct SimulateOptions {
  Times times = {};                      // of one full stage per actor: a chunk gets 1/v, a sequence segment 1/segments
  std::optional<double> recompute = {};  // time of R for a full stage; given: implied before I or B where it is absent
  StageCosts stages = {};                // one per stage, instead of `times` and `recompute`
  std::function<Link(int from, int to)> link = {};  // between actors; absent: {times.message, no limit}
  bool contention = false;                          // one message at a time from one actor to another
  double freed_by_i = 0;                            // share of an activation that I frees already; the rest waits for W
  double epilogue = 0;                              // what every actor does between two steps (norm, update)
  int repeats = 32;                                 // steps to play at most while looking for the period; 0: no period
  bool timeline = true;                             // false: numbers only
  bool messages = false;                            // the timeline shows messages too
};

struct Prediction {
  Timeline timeline;
  double makespan = 0;               // first start to last end of one step
  double span = 0;                   // the longest single actor's first start to last end
  double period = 0;                 // of repeated steps when actors run on into the next one
  double period_barrier = 0;         // of repeated steps when all wait for all (clipping): makespan + epilogue
  double bubble = 0;                 // idle share of makespan x actors
  std::vector<double> actor_bubble;  // idle share of the makespan
  std::vector<double> peak;          // live activations, in those of one full stage and microbatch
  std::vector<double> weights;       // weights held, in those of one full stage: 2 when bidirectional
  std::vector<double> peak_bytes;    // empty when no sizes are given
  std::vector<double> weight_bytes;  // likewise
};

// Linear in the number of actions.
Prediction simulate(const Validated<Schedule>&, const SimulateOptions& options = {});

// The same for any schedule; one that is not valid is an Error with all its faults. Rows of forwards alone may be
// played.
Prediction simulate(const Schedule&, const SimulateOptions& options = {});

}  // namespace stretto
