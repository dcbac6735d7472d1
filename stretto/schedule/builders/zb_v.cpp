#include <algorithm>

#include "stretto/schedule/builders/common.h"

namespace stretto::builders {

// The order is defined from 2p-1 microbatches on; with fewer, it is that order without the microbatches that are not
// there, which breaks no dependency because microbatches depend on each other only through the rows.
Schedule zb_v(const Request& r) {
  Schedule s = v_shaped(r);
  const int p = r.actors, defined = std::max(r.microbatches, 2 * p - 1);
  for (int a = 0; a < p; ++a) {
    Row& row = s.rows[a];
    row.reserve(6 * r.microbatches);
    const int stage[2] = {a, 2 * p - 1 - a};
    int f[2] = {}, i[2] = {}, w[2] = {};
    const auto put = [&](Phase phase, int chunk, int& next) {
      if (next < r.microbatches) row.add(phase, stage[chunk], next);
      ++next;
    };
    const auto F = [&](int chunk) { put(Phase::F, chunk, f[chunk]); };
    const auto I = [&](int chunk) { put(Phase::I, chunk, i[chunk]); };
    const auto W = [&](int chunk) { put(Phase::W, chunk, w[chunk]); };

    for (int k = 0; k < 2 * (p - a) - 1; ++k) F(0);
    for (int k = 0; k < a; ++k) F(1), F(0);
    for (int k = 0; k < p - a; ++k) F(1), I(1), W(1);
    while (f[0] < defined || f[1] < defined) {
      if (f[0] < defined) F(0);
      I(0), W(0);
      if (f[1] < defined) F(1);
      I(1), W(1);
    }
    // Cool-down: input gradients first, the weight gradients they leave behind fill the end.
    for (int k = 0; k < a; ++k) I(0), I(1);
    for (int k = 0; k < p - a; ++k) I(0), W(0);
    while (w[1] < defined) W(1);
    while (w[0] < defined) W(0);
  }
  return s;
}

}  // namespace stretto::builders
