#include <algorithm>

#include "stretto/schedule/builders/common.h"

namespace stretto::builders {

// 1F1B over sequence segments. A microbatch's backward starts with its last segment, so that k-1 more forwards come
// first.
Schedule seq_1f1b(const Request& r) {
  Schedule s = looped(r);
  const int k = r.segments, count = r.microbatches * k;
  for (int a = 0; a < r.actors; ++a) {
    Row& row = s.rows[a];
    row.reserve(2 * count);
    const int warm = std::min(r.actors - a - 1 + k - 1, count);
    const auto F = [&](int n) { row.add(Phase::F, a, n / k, 0, n % k); };
    const auto B = [&](int n) { row.add(Phase::B, a, n / k, 0, k - 1 - n % k); };
    for (int n = 0; n < warm; ++n) F(n);
    for (int n = 0; n < count; ++n) {
      if (warm + n < count) F(warm + n);
      B(n);
    }
  }
  return s;
}

}  // namespace stretto::builders
