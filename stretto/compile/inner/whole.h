// Whole matrices for the updates of optimizers that ask for them: put together from all ranks on every rank, and cut
// again.
//
//   Slice s;
//   offer_whole(s, optimizer, traced.params[param], sharded, param);   // s.matrix, s.whole, s.part
#pragma once
#include <optional>

#include "stretto/compile/traced.h"
#include "stretto/optim/optimizer.h"
#include "stretto/shard/shard.h"

namespace stretto {

// The sides of a parameter that the optimizer is to see as a matrix.
std::optional<MatrixDims> matrix_of(const Optimizer&, const TracedParam&);

// The functions of the slice refer to `sharded`; none: an actor is one rank.
void offer_whole(Slice&, const Optimizer&, const TracedParam&, const Sharded*, ParamId);

}  // namespace stretto
