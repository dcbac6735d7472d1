// Which accumulators are summed over ranks together, as tasks: each a single collective on accumulators that lie side
// by side.
//
//   add_sums(step, program, bucket_bytes(link, 8));      // a `sum` task for each bucket
#pragma once
#include "stretto/cost/machine.h"
#include "stretto/program/program.h"

namespace stretto {

// Everything starts on 64 bytes.
inline u64 aligned(u64 bytes) { return (bytes + 63) / 64 * 64; }

// As small as the link allows, so that the first sums start early and little is left after the last: latency is a
// twentieth of what a bucket takes. Between 64 KiB and 8 MiB.
u64 bucket_bytes(const Link&, int ranks);

// Puts accumulators of one actor, stage, type and set of axes together, in the order in which backward makes them: from
// the last piece to the first. A bucket has at most `most` bytes, unless one accumulator alone has more. Of the
// program, only the placement is read.
void add_sums(Step&, const Program&, u64 most);

}  // namespace stretto
