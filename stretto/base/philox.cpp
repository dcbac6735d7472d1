#include "stretto/base/philox.h"

#include "stretto/base/hash.h"

namespace stretto {

PhiloxKey philox_key(std::uint64_t seed, std::string_view name) {
  const std::uint64_t h = hash_of(seed, name);
  return {low32(h), high32(h)};
}

namespace {
double open53(std::uint32_t hi, std::uint32_t lo) {
  const std::uint64_t wide = hi;
  return (((wide << 21) ^ (lo >> 11)) + 0.5) * 0x1p-53;
}
}  // namespace

double uniform_at(PhiloxKey key, std::uint64_t index) {
  const std::uint64_t pair = index / 2;
  const Philox4 r = philox({low32(pair), high32(pair), 1, 0}, key);
  return index % 2 ? open53(r[2], r[3]) : open53(r[0], r[1]);
}

}  // namespace stretto
