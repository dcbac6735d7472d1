#include "stretto/schedule/builders/interleaved.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/schedule/builders/common.h"

namespace stretto::builders {

namespace {

bool groups_are_equal(int microbatches, int actors) { return microbatches % std::max(1, microbatches / actors) == 0; }

}  // namespace

Interleaving::Interleaving(const Request& r, std::string_view name)
    : actors(r.actors), chunks(r.chunks), group(1), count(r.microbatches * r.chunks) {
  if (!groups_are_equal(r.microbatches, r.actors)) {
    throw Error(name, "{} microbatches do not fall into {} equal groups on {} actors", r.microbatches,
                r.microbatches / r.actors, r.actors)
        .hint("use {} microbatches",
              nearest_microbatches(r.microbatches, [&](int m) { return groups_are_equal(m, r.actors); }));
  }
  group = r.microbatches / std::max(1, r.microbatches / r.actors);
}

Schedule interleave(const Request& r, std::string_view name, int more) {
  Schedule s = looped(r);
  const Interleaving in(r, name);
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
