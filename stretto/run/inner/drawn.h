// A batch that nobody gives: ids among those that their readers allow, other numbers from -1 to 1. Of seed, step and
// logical places alone, so that it is the same under every layout.
//
//   trainer.step(drawn_batch(trainer.compiled(), 1, 7));
#pragma once
#include "stretto/base/array.h"
#include "stretto/compile/compile.h"

namespace stretto {

Batch drawn_batch(const Compiled&, u64 seed, i64 step);

}  // namespace stretto
