#include "stretto/schedule/builders/common.h"

namespace stretto::builders {

Schedule looped_bfs(const Request& r) {
  Schedule s = looped(r);
  for (int a = 0; a < r.actors; ++a) {
    Row& row = s.rows[a];
    row.reserve(2 * r.microbatches * r.chunks);
    for (int c = 0; c < r.chunks; ++c) {
      for (int m = 0; m < r.microbatches; ++m) row.F(c * r.actors + a, m);
    }
    for (int c = r.chunks - 1; c >= 0; --c) {
      for (int m = 0; m < r.microbatches; ++m) row.B(c * r.actors + a, r.descending ? r.microbatches - 1 - m : m);
    }
  }
  return s;
}

}  // namespace stretto::builders
