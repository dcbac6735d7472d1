#include <algorithm>

#include "stretto/schedule/builders/common.h"
#include "stretto/schedule/builders/dual.h"

namespace stretto::builders {

Schedule dualpipe(const Request& r) {
  Schedule s = bidirectional(r);
  const int p = r.actors, m = r.microbatches, half = p / 2;
  for (int a = 0; a < p; ++a) {
    const Flow down{.pipe = 0, .stage = a, .first = 0}, up{.pipe = 1, .stage = p - 1 - a, .first = m / 2};
    const bool upper = a < half;
    fill_dual(s.rows[a], std::min(a, p - 1 - a), half, m / 2, upper ? down : up, upper ? up : down);
  }
  return s;
}

}  // namespace stretto::builders
