#include <algorithm>

#include "stretto/schedule/builders/common.h"
#include "stretto/schedule/builders/interleaved.h"

namespace stretto::builders {

// The warm-up is shorter than interleaved 1F1B's because an input gradient comes back sooner than a whole backward.
// Actor r holds back r weight gradients, which then fill the gaps of the cool-down.
Schedule interleaved_zb(const Request& r) {
  Schedule s = looped(r);
  const Interleaving in(r);
  for (int a = 0; a < r.actors; ++a) {
    Row& row = s.rows[a];
    row.reserve(3 * in.count);
    const int warm = std::min((in.chunks - 1) * in.group + (r.actors - 1 - a), in.count);
    int w = 0;
    for (int k = 0; k < warm; ++k) in.F(row, a, k);
    for (int k = 0; k < in.count; ++k) {
      if (warm + k < in.count) in.F(row, a, warm + k);
      in.I(row, a, k);
      if (k >= a) in.W(row, a, w++);
    }
    while (w < in.count) in.W(row, a, w++);
  }
  return s;
}

}  // namespace stretto::builders
