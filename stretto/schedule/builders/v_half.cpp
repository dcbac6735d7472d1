#include "stretto/schedule/builders/common.h"
#include "stretto/schedule/builders/v_pattern.h"

namespace stretto::builders {

// Forwards go down at half speed and come back at full speed, input gradients likewise: about p/2 activations. For an
// even number of actors three slots of pause keep the four from colliding.
Schedule v_half(const Request& r) {
  Pattern pattern;
  const int p = v_shaped(r).actors(), pause = p % 2 == 0 ? 3 : 0;
  for (int a = 0; a < p; ++a) {
    pattern.push_back({2 * a, 3 * p - 2 - a, 3 * p - 1 + pause + 2 * a, 6 * p - 2 + pause - a});
  }
  return squeeze(r, pattern);
}

}  // namespace stretto::builders
