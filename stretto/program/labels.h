// What pictures of a step call its tasks outside of the microbatch loop, and its collectives.
//
//   label_of(program, run.task)      // "norm", "sum of gradients of stage 1", "gather of parameters of piece 3"
#pragma once
#include <string>

#include "stretto/program/program.h"

namespace stretto {

std::string label_of(const Program&, TaskId);

}  // namespace stretto
