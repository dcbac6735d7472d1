#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/schedule/builders/common.h"
#include "stretto/schedule/builders/dual.h"

namespace stretto::builders {

Schedule dualpipe(const Request& r) {
  Schedule s = bidirectional(r);
  const int p = r.actors, m = r.microbatches, half = p / 2;
  if (p % 2 != 0) {
    throw Error("dualpipe", "{} actors cannot face each other in pairs", p)
        .hint("use {}{} actors, or dualpipe-v", p > 1 ? fmt::format("{} or ", p - 1) : "", p + 1);
  }
  if (m % 2 != 0 || m < 2 * p) {
    throw Error("dualpipe", "{} microbatches on {} actors, where it needs an even number from {} on", m, p, 2 * p)
        .hint("use {} microbatches", m < 2 * p ? std::to_string(2 * p) : fmt::format("{} or {}", m - 1, m + 1));
  }
  for (int a = 0; a < p; ++a) {
    const Flow down{.pipe = 0, .stage = a, .first = 0}, up{.pipe = 1, .stage = p - 1 - a, .first = m / 2};
    const bool upper = a < half;
    fill_dual(s.rows[a], std::min(a, p - 1 - a), half, m / 2, upper ? down : up, upper ? up : down);
  }
  return s;
}

}  // namespace stretto::builders
