// What a compiled program will cost, from the operations and bytes of its tasks, before it has run.
//
//   Prediction p = predict(*compiled.program, {.machine = {.flops = 50e9}});
//   fmt::print("bubble {:.1f}%\n", 100 * p.bubble);
#pragma once
#include <optional>
#include <vector>

#include "stretto/program/program.h"
#include "stretto/simulate/simulate.h"

namespace stretto {

struct PredictOptions {
  Machine machine = {};
  std::optional<Link> link = {};  // between neighbouring actors; none: messages cost nothing
  bool messages = false;          // the timeline shows them
};

// Seconds per stage and phase, and the bytes a stage sends. With a link, collectives in its tasks take their time too.
StageCosts stage_costs(const Program&, const Machine& = {}, const std::optional<Link>& = {});

// Operations of one step, all ranks together: forward and backward of all microbatches, whatever is made again left
// out.
double step_flops(const Program&);

// One step on actors that each have a machine of their own, in seconds: what comes before and after the microbatches
// and what goes on beside them (step_time.h) included, and the period of steps that follow each
// other at once. Memory is the schedule's alone.
Prediction predict(const Program&, const PredictOptions& = {});

}  // namespace stretto
