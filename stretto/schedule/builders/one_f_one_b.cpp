#include <algorithm>

#include "stretto/schedule/builders/common.h"

namespace stretto::builders {

void fill_one_f_one_b(Row& row, int stage, int warm, const Request& r) {
  const Counted n(r);
  row.reserve(2 * n.count);
  int f = 0, b = 0;
  const auto F = [&] { n.F(row, stage, f++); };
  const auto B = [&] { n.back(row, Phase::B, stage, b++); };
  while (f < std::min(warm + n.last_segment(), n.count)) F();
  while (f < n.count) F(), B();
  while (b < n.count) B();
}

Schedule one_f_one_b(const Request& r) {
  Schedule s = looped(r);
  for (int a = 0; a < r.actors; ++a) fill_one_f_one_b(s.rows[a], a, r.actors - a - 1, r);
  return s;
}

}  // namespace stretto::builders
