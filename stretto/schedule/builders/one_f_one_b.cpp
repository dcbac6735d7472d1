#include <algorithm>

#include "stretto/schedule/builders/common.h"

namespace stretto::builders {

void fill_one_f_one_b(Row& row, int stage, int warm, int microbatches) {
  row.reserve(2 * microbatches);
  int f = 0, b = 0;
  while (f < std::min(warm, microbatches)) row.F(stage, f++);
  while (f < microbatches) row.F(stage, f++).B(stage, b++);
  while (b < microbatches) row.B(stage, b++);
}

Schedule one_f_one_b(const Request& r) {
  Schedule s = looped(r);
  for (int a = 0; a < r.actors; ++a) fill_one_f_one_b(s.rows[a], a, r.actors - a - 1, r.microbatches);
  return s;
}

}  // namespace stretto::builders
