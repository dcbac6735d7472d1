#include "stretto/schedule/builders/common.h"

namespace stretto::builders {

Schedule gpipe(const Request& r) {
  Schedule s = looped(r);
  for (int a = 0; a < r.actors; ++a) {
    Row& row = s.rows[a];
    row.reserve(2 * r.microbatches);
    for (int m = 0; m < r.microbatches; ++m) row.F(a, m);
    for (int m = 0; m < r.microbatches; ++m) row.B(a, r.descending ? r.microbatches - 1 - m : m);
  }
  return s;
}

}  // namespace stretto::builders
