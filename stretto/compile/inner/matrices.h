// Which parameters are matrices: those that are multiplied with, and nothing else is done with them.
//
//   IdVector<ParamId, std::optional<MatrixDims>> m = matrices_of(traced.step);
#pragma once
#include <optional>

#include "stretto/ir/step_graph.h"
#include "stretto/optim/optimizer.h"

namespace stretto {

// By the dims that products sum over: those are rows. None for a parameter with fewer than two sides, and where two
// readers see different ones (a tied head).
IdVector<ParamId, std::optional<MatrixDims>> matrices_of(const StepGraph& forward);

}  // namespace stretto
