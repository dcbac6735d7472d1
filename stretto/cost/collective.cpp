#include "stretto/cost/collective.h"

#include <algorithm>

namespace stretto {
namespace {

double phases(const CollectiveShape& s) { return s.kind == CollectiveKind::reduce ? 2 : 1; }

}  // namespace

double collective_bytes(const CollectiveShape& s) {
  const double n = s.members, whole = double(std::max(s.operand(), s.result())) * double(size_of(s.dtype));
  return phases(s) * (n - 1) / n * whole;
}

double collective_seconds(const CollectiveShape& s, const Link& l) {
  return phases(s) * (s.members - 1) * l.latency + collective_bytes(s) / l.bandwidth;
}

}  // namespace stretto
