// What builders share. A builder is a function of a Request whose chunks and segments are settled, and
// within the limits that its line in builders.def states:
//
//   Schedule gpipe(const Request& r) { Schedule s = looped(r); ...; return s; }
#pragma once
#include "stretto/schedule/schedule.h"

namespace stretto::builders {

#define STRETTO_SCHEDULE(function, ...) Schedule function(const Request&);
#include "stretto/schedule/builders.def"
#undef STRETTO_SCHEDULE

// `warm` forwards, then pairs of one forward and one backward, then the remaining backwards.
void fill_one_f_one_b(Row& row, int stage, int warm, int microbatches);

}  // namespace stretto::builders
