#include "stretto/schedule/builders/common.h"
#include "stretto/schedule/builders/zb_h.h"

namespace stretto::builders {

Schedule zb_h2(const Request& r) {
  Schedule s = looped(r);
  for (int a = 0; a < r.actors; ++a) fill_zb_h(s.rows[a], a, 2 * (r.actors - a) - 1, 2 * a, r);
  return s;
}

}  // namespace stretto::builders
