// What tasks and cuts cost: operations and bytes, before fusion. How long they take: fuse/cost.h.
//
//   Cost c = task_cost(step.tasks[TaskId(0)]);
//   fmt::print("{} operations, {} bytes\n", c.flops, c.read + c.written);
#pragma once
#include <vector>

#include "stretto/ir/op.h"
#include "stretto/step/step.h"

namespace stretto {

Cost task_cost(const Task&);

// Bytes that cross each boundary (number b lies after the b-th piece, or its segments) when it is cut, in one
// microbatch. A connection over several cuts counts at each.
struct Crossing {
  double forward = 0, backward = 0;
};
std::vector<Crossing> crossings(const Step&);

}  // namespace stretto
