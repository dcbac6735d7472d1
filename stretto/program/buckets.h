// Which accumulators are summed over ranks together, as tasks: each a single collective on accumulators that lie side by
// side.
//
//   add_sums(step, program, u64(8) << 20);      // buckets of at most 8 MiB, a `sum` task each
#pragma once
#include "stretto/program/program.h"

namespace stretto {

// Everything starts on 64 bytes.
inline u64 aligned(u64 bytes) { return (bytes + 63) / 64 * 64; }

// By actor, stage, axes and type, up to `most` bytes each unless one accumulator is larger, in the order in which
// backward makes them: from the last piece to the first. Of the program, placement is known.
void add_sums(Step&, const Program&, u64 most);

}  // namespace stretto
