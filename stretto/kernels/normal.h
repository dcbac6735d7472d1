// Normal random numbers for initialisation: a pure function of key and index, eight blocks at a time.
//
//   fill_normal(philox_key(seed, "h.0.up"), 0, 0.02, std::span<float>(w));
#pragma once
#include <span>

#include "stretto/base/philox.h"

namespace stretto {

// to[i] = scale times the (first + i)-th number of the key's standard normal stream. The stream is made in f32, so that
// an f64 run starts from the same values.
void fill_normal(PhiloxKey key, std::uint64_t first, double scale, std::span<float> to);
void fill_normal(PhiloxKey key, std::uint64_t first, double scale, std::span<double> to);

}  // namespace stretto
