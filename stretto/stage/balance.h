// Which pieces a stage takes.
//
//   std::vector<int> stage_of = balance(piece_costs(step), 4);     // per piece: its stage
#pragma once
#include <vector>

#include "stretto/ir/op.h"
#include "stretto/stage/task.h"

namespace stretto {

Cost task_cost(const Task&);

// Forward and backward of each piece: operations and bytes.
std::vector<Cost> piece_costs(const Step&);

// Neighbouring pieces per stage such that the most expensive stage costs as little as possible (exact). More stages
// than pieces are refused.
std::vector<int> balance(const std::vector<double>& seconds, int stages);

// Stages by the number of pieces each takes: they must add up.
std::vector<int> cut(const std::vector<int>& pieces_per_stage, int pieces);

}  // namespace stretto
