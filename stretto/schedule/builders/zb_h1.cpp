#include "stretto/schedule/builders/common.h"
#include "stretto/schedule/builders/zb_h.h"

namespace stretto::builders {

void fill_zb_h(Row& row, int stage, int forwards, int pairs, const Request& r) {
  const Counted n(r);
  row.reserve(3 * n.count);
  int f = 0, i = 0, w = 0;
  const auto F = [&] {
    if (f < n.count) n.F(row, stage, f++);
  };
  const auto I = [&] {
    if (i < n.count && n.forwards_before(i) <= f) n.back(row, Phase::I, stage, i++);
  };
  for (int k = 0; k < forwards + n.last_segment(); ++k) F();
  for (int k = 0; k < pairs; ++k) I(), F();
  while (w < n.count) {
    I();
    n.back(row, Phase::W, stage, w++);
    F();
  }
}

Schedule zb_h1(const Request& r) {
  Schedule s = looped(r);
  for (int a = 0; a < r.actors; ++a) fill_zb_h(s.rows[a], a, r.actors - a, a, r);
  return s;
}

}  // namespace stretto::builders
