// The fifth arrow: the tasks of a step outside the microbatch loop. Sums of outputs over ranks and loss scales; for
// training, sums of gradients over pieces and ranks, norms, clipping, update.
//
//   const Surroundings around{.traced = traced, .sharded = placed.sharded.get(), .microbatches = 8, .pipes = 1};
//   WholeStep whole = add_prologue(std::move(cut.step), around);
//   whole = add_epilogue(std::move(whole), around, adamw(), {.clip = 1});
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stretto/compile/traced.h"
#include "stretto/optim/optimizer.h"
#include "stretto/shard/shard.h"
#include "stretto/step/step.h"

namespace stretto {

// What a step's tasks need to know about the run.
struct Surroundings {
  const Traced& traced;
  const Sharded* sharded = nullptr;  // none: an actor is one rank
  int microbatches = 1;              // that its tasks run on
  int pipes = 1;                     // each accumulates for itself
};

std::optional<ScalarId> find_scalar(const IdVector<ScalarId, std::string>& names, std::string_view name);

struct WholeStep {
  Step step;
  IdVector<ScalarId, std::string> scalars;  // names, as step.scalars
  std::optional<ScalarId> scalar(std::string_view name) const { return find_scalar(scalars, name); }
};

// Sums of outputs over ranks, which every rank gets, so that losses and counts have the same bits everywhere; then
// every loss term's scale.
WholeStep add_prologue(Step, const Surroundings&);

struct EpilogueOptions {
  double clip = 0;              // of the global gradient norm; 0: none
  bool skip_nonfinite = false;  // the update leaves everything as it is when that norm is not finite
  bool late = false;            // the caller sets the factor before the norm is known, and undoes a wrong step
};
WholeStep add_epilogue(WholeStep, const Surroundings&, const Optimizer&, const EpilogueOptions&);

// A parameter's accumulators at level 0: the first holds the whole gradient after a step.
IdVector<ParamId, std::vector<AccumulatorId>> accumulators_of(const Step&);

// The piece whose tasks make an output.
PieceId piece_of_output(const Step&, OutputId);

}  // namespace stretto
