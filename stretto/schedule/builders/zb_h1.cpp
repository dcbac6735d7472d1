#include "stretto/schedule/builders/common.h"
#include "stretto/schedule/builders/zb_h.h"

namespace stretto::builders {

void fill_zb_h(Row& row, int stage, int forwards, int pairs, int microbatches) {
  row.reserve(3 * microbatches);
  int f = 0, i = 0, w = 0;
  const auto F = [&] {
    if (f < microbatches) row.F(stage, f++);
  };
  const auto I = [&] {
    if (i < f) row.I(stage, i++);
  };
  for (int k = 0; k < forwards; ++k) F();
  for (int k = 0; k < pairs; ++k) I(), F();
  while (w < microbatches) {
    I();
    row.W(stage, w++);
    F();
  }
}

Schedule zb_h1(const Request& r) {
  Schedule s = looped(r);
  for (int a = 0; a < r.actors; ++a) fill_zb_h(s.rows[a], a, r.actors - a, a, r.microbatches);
  return s;
}

}  // namespace stretto::builders
