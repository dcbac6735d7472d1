// What a step reads that changes from step to step: the batch, and numbers such as the learning rate.
//
//   check_batch(compiled, batch);                  // once, by whoever submits the step
//   load_batch(compiled, worker, batch);           // by every rank when it begins the step
//   set_scalar(compiled, worker, "lr", 3e-4);
#pragma once
#include <string_view>

#include "stretto/base/array.h"
#include "stretto/compile/compile.h"
#include "stretto/runtime/worker.h"

namespace stretto {

// An Error unless it is what the program declares.
void check_batch(const Compiled&, const Batch&);

// What this rank needs of it. The batch has been checked.
void load_batch(const Compiled&, Worker&, const Batch&);

// A number that the program does not read is left out.
void set_scalar(const Compiled&, Worker&, std::string_view name, double value);

}  // namespace stretto
