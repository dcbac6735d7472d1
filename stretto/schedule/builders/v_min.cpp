#include "stretto/schedule/builders/common.h"
#include "stretto/schedule/builders/v_pattern.h"

namespace stretto::builders {

// Everything moves at full speed, so that a microbatch leaves as soon as it can: about p/3 activations. When three
// divides the number of actors two slots of pause keep the four from colliding.
Schedule v_min(const Request& r) {
  Pattern pattern;
  const int p = v_shaped(r).actors(), pause = p % 3 == 0 ? 2 : 0;
  for (int a = 0; a < p; ++a) {
    pattern.push_back({a, 2 * p - 1 - a, 2 * p + pause + a, 4 * p - 1 + pause - a});
  }
  return squeeze(r, pattern);
}

}  // namespace stretto::builders
