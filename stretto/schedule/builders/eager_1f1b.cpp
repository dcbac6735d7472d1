#include "stretto/schedule/builders/common.h"

namespace stretto::builders {

Schedule eager_1f1b(const Request& r) {
  Schedule s = looped(r);
  for (int a = 0; a < r.actors; ++a) fill_one_f_one_b(s.rows[a], a, 2 * (r.actors - a - 1), r);
  return s;
}

}  // namespace stretto::builders
