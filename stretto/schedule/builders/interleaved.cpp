#include "stretto/schedule/builders/interleaved.h"

#include <algorithm>

namespace stretto::builders {

Interleaving::Interleaving(const Request& r)
    : actors(r.actors),
      chunks(r.chunks),
      group(r.microbatches / std::max(1, r.microbatches / r.actors)),
      count(r.microbatches * r.chunks) {}

Schedule interleave(const Request& r, int more) {
  Schedule s = looped(r);
  const Interleaving in(r);
  for (int a = 0; a < r.actors; ++a) {
    Row& row = s.rows[a];
    row.reserve(2 * in.count);
    const int warm = std::min((in.chunks - 1) * in.group + 2 * (r.actors - 1 - a) + more, in.count);
    for (int k = 0; k < warm; ++k) in.F(row, a, k);
    for (int k = 0; k < in.count; ++k) {
      if (warm + k < in.count) in.F(row, a, warm + k);
      in.B(row, a, k);
    }
  }
  return s;
}

}  // namespace stretto::builders
