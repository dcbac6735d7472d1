// The next token from logits.
//
//   std::int32_t id = sample(logits, {.temperature = 0.8, .top_k = 50}, uniform_at(key, n));
#pragma once
#include <cstdint>
#include <span>

#include "stretto/base/id.h"

namespace stretto {

struct SampleOptions {
  double temperature = 1;  // 0: the most likely token, always
  i64 top_k = 0;           // only the k most likely; 0: all
  double top_p = 1;        // only as many of the most likely as reach this probability together
};
void check(const SampleOptions&);

// `u` from [0, 1) decides. Among equals the lower id comes first.
std::int32_t sample(std::span<const double> logits, const SampleOptions&, double u);

}  // namespace stretto
