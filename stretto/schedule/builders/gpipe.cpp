#include "stretto/schedule/builders/common.h"

namespace stretto::builders {

Schedule gpipe(const Request& r) {
  Schedule s = looped(r);
  for (int a = 0; a < r.actors; ++a) {
    Row& row = s.rows[a];
    const Counted n(r);
    row.reserve(2 * n.count);
    for (int i = 0; i < n.count; ++i) n.F(row, a, i);
    for (int m = 0; m < r.microbatches; ++m)
      for (int k = 0; k < n.segments; ++k)
        n.back(row, Phase::B, a, (r.descending ? r.microbatches - 1 - m : m) * n.segments + k);
  }
  return s;
}

}  // namespace stretto::builders
