#include <algorithm>

#include "stretto/schedule/builders/common.h"
#include "stretto/schedule/builders/interleaved.h"

namespace stretto::builders {

// One more forward in flight lets the message of every forward travel while its receiver still has work.
// The extra forward makes every steady forward independent of the backward after it: the two are one overlap group.
Schedule kimi_k2(const Request& r) {
  Schedule s = interleave(r, 1);
  for (Row& row : s.rows) {
    std::uint32_t groups = 0;
    const auto first = std::find_if(row.begin(), row.end(), [](const Action& a) { return a.phase == Phase::B; });
    for (auto b = first; b != row.end(); ++b)
      if (b != first && b[-1].phase == Phase::F) b[-1].overlap = b->overlap = ++groups;
  }
  return s;
}

}  // namespace stretto::builders
