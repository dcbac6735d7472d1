// Cuts the differentiated step into tasks, one per piece and phase.
//
//   Step step = split(graph_of_the_step);
#pragma once
#include "stretto/ir/step_graph.h"
#include "stretto/step/recompute.h"
#include "stretto/step/step.h"

namespace stretto {

struct SplitOptions {
  IdVector<PieceId, Recompute> recompute = {};  // empty: none
  IdVector<PieceId, StageId> stage_of = {};     // empty: one stage. Only full recompute looks at it
};

// A node of piece k made by differentiation is I when a lower piece needs it, else W. Values that depend on inputs and
// constants only, and views, are made again where they are used instead of being kept. R makes again what backward
// reads and F does not keep.
Step split(const StepGraph&, const SplitOptions& = {});

}  // namespace stretto
