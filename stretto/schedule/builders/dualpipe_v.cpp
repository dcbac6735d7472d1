#include "stretto/schedule/builders/common.h"
#include "stretto/schedule/builders/dual.h"

namespace stretto::builders {

// DualPipe folded in the middle: what comes from the other end is the second half of the same microbatch's way.
Schedule dualpipe_v(const Request& r) {
  Schedule s = v_shaped(r);
  const int p = r.actors, m = r.microbatches;
  for (int a = 0; a < p; ++a) fill_dual(s.rows[a], a, p, m, {0, a, 0}, {0, 2 * p - 1 - a, 0});
  return s;
}

}  // namespace stretto::builders
