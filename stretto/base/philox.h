// Philox 4x32-10 (Salmon et al., 2011): random numbers as a pure function of a key and a counter, so that
// initialisation and dropout depend on logical names and indices and never on ranks or order.
//
//   float u = uniform01(philox({index_lo, index_hi, step, 0}, {seed_lo, seed_hi})[0]);
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace stretto {

using Philox4 = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// The halves of a number.
inline std::uint32_t low32(std::uint64_t x) { return x; }
inline std::uint32_t high32(std::uint64_t x) { return x >> 32; }

inline Philox4 philox(Philox4 c, PhiloxKey k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t(0xD2511F53u) * c[0], b = std::uint64_t(0xCD9E8D57u) * c[2];
    c = {high32(b) ^ c[1] ^ k[0], low32(b), high32(a) ^ c[3] ^ k[1], low32(a)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

// A key that depends on the seed and a name only.
PhiloxKey philox_key(std::uint64_t seed, std::string_view name);

inline float uniform01(std::uint32_t bits) { return (bits >> 8) * 0x1p-24f; }  // [0, 1)

double uniform_at(PhiloxKey key, std::uint64_t index);  // [0, 1), 53 bits

}  // namespace stretto
