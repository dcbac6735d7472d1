// V-shaped schedules from a repeating pattern: every microbatch takes the same slots, six after the one before it, and
// then all are squeezed towards the start as far as a memory cap allows.
//
//   Schedule s = squeeze(request, pattern);
#pragma once
#include <array>
#include <vector>

#include "stretto/schedule/schedule.h"

namespace stretto::builders {

// Per actor the slots of the first microbatch's F of the first chunk, F of the second, I of the second, I of the first.
// On one actor they differ modulo 6, which leaves two slots of six for the weight gradients.
using Pattern = std::vector<std::array<int, 4>>;

// The pattern's own peak memory, rounded to what the largest actor needs in the steady state, is the cap for all.
Schedule squeeze(const Request& r, const Pattern& pattern);

}  // namespace stretto::builders
