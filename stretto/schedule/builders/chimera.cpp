#include <optional>

#include "stretto/schedule/builders/common.h"

namespace stretto::builders {

namespace {

// The k-th microbatch of a flow that stands in every second slot from `first` on, p/2 of them in each unit of 2p slots,
// when slot t holds one.
std::optional<int> in_slot(int t, int first, int p) {
  const int since = t - first;
  if (since < 0 || since % 2 != 0 || since % (2 * p) >= p) return std::nullopt;
  return since / (2 * p) * (p / 2) + since % (2 * p) / 2;
}

}  // namespace

// Two pipes of p/2 microbatches fill p actors without conflict when forwards and backwards take one slot each: on actor
// r the down pipe has its forwards from slot r on and its backwards from 2p-1-r on, the up pipe from p-1-r and p+r on,
// all in steps of two. The next unit follows 2p slots later, in slots that are free. A last unit that is not full is
// the full one without the microbatches that are not there.
Schedule chimera(const Request& r) {
  Schedule s = bidirectional(r);
  const int p = r.actors;
  const int down = r.microbatches / 2, up = r.microbatches - down;
  const int units = (2 * up + p - 1) / p;
  for (int a = 0; a < p; ++a) {
    Row& row = s.rows[a];
    row.reserve(2 * r.microbatches);
    const auto put = [&](Phase phase, int pipe, std::optional<int> k) {
      if (!k || *k >= (pipe == 0 ? down : up)) return;
      row.add(phase, pipe == 0 ? a : p - 1 - a, pipe == 0 ? *k : down + *k, pipe);
    };
    for (int t = 0; t < (units + 1) * 2 * p; ++t) {
      put(Phase::F, 0, in_slot(t, a, p));
      put(Phase::F, 1, in_slot(t, p - 1 - a, p));
      put(Phase::B, 0, in_slot(t, 2 * p - 1 - a, p));
      put(Phase::B, 1, in_slot(t, p + a, p));
    }
  }
  return s;
}

}  // namespace stretto::builders
