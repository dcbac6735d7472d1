#include "stretto/base/philox.h"

#include "stretto/base/hash.h"

namespace stretto {

PhiloxKey philox_key(std::uint64_t seed, std::string_view name) {
  const std::uint64_t h = hash_of(seed, name);
  return {std::uint32_t(h), std::uint32_t(h >> 32)};
}

namespace {
double open53(std::uint32_t hi, std::uint32_t lo) {
  return (double((std::uint64_t(hi) << 21) ^ (lo >> 11)) + 0.5) * 0x1p-53;
}
}  // namespace

double uniform_at(PhiloxKey key, std::uint64_t index) {
  const std::uint64_t pair = index / 2;
  const Philox4 r = philox({std::uint32_t(pair), std::uint32_t(pair >> 32), 1, 0}, key);
  return index % 2 ? open53(r[2], r[3]) : open53(r[0], r[1]);
}

}  // namespace stretto
