#include "stretto/base/hash.h"

#include <xxhash.h>

#include <new>

namespace stretto {
std::uint64_t hash_bytes(const void* data, std::size_t bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, bytes, seed);
}

StreamHash::StreamHash() : state_(XXH3_createState()) {
  if (!state_ || XXH3_64bits_reset(state_) != XXH_OK) throw std::bad_alloc();
}
StreamHash::~StreamHash() { XXH3_freeState(state_); }
void StreamHash::add(const void* data, std::size_t bytes) { XXH3_64bits_update(state_, data, bytes); }
std::uint64_t StreamHash::value() const { return XXH3_64bits_digest(state_); }

}  // namespace stretto
