// Which accumulators are summed over ranks together.
#pragma once
#include <vector>

#include "stretto/program/program.h"

namespace stretto {

// By actor, stage, axes and type, up to `most` bytes each unless one accumulator is larger, in the order in which
// backward makes them: from the last piece to the first.
std::vector<GradientBucket> buckets_of(const Program&, u64 most);

}  // namespace stretto
