// What builders share. A builder is a function of a Request whose chunks and segments are already settled:
//
//   Schedule gpipe(const Request& r) { Schedule s = looped(r); ...; return s; }
#pragma once
#include <string>
#include <string_view>

#include "stretto/schedule/schedule.h"

namespace stretto::builders {

#define STRETTO_SCHEDULE(name, function, ...) Schedule function(const Request&);
#include "stretto/schedule/builders.def"
#undef STRETTO_SCHEDULE

// `warm` forwards, then pairs of one forward and one backward, then the remaining backwards.
void fill_one_f_one_b(Row& row, int stage, int warm, int microbatches);

// "8 or 12": the nearest numbers of microbatches below and above m for which `works` holds.
template <class Works>
std::string nearest_microbatches(int m, Works works) {
  int below = m - 1, above = m + 1;
  while (below > 0 && !works(below)) --below;
  while (!works(above)) ++above;
  return below > 0 ? std::to_string(below) + " or " + std::to_string(above) : std::to_string(above);
}

}  // namespace stretto::builders
