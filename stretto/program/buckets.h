// Which accumulators are summed over ranks together, as tasks: each a single collective on accumulators that lie side
// by side.
//
//   add_sums(step, program, u64(8) << 20);      // buckets of at most 8 MiB, a `sum` task each
#pragma once
#include "stretto/program/program.h"

namespace stretto {

// Everything starts on 64 bytes.
inline u64 aligned(u64 bytes) { return (bytes + 63) / 64 * 64; }

// Puts accumulators of one actor, stage, type and set of axes together, in the order in which backward makes them: from
// the last piece to the first. A bucket has at most `most` bytes, unless one accumulator alone has more. Of the
// program, only the placement is read.
void add_sums(Step&, const Program&, u64 most);

}  // namespace stretto
