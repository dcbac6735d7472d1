// Content hashes (XXH3). `hash_of(seed, name)`; `u64 h = 0; hash_into(h, 3); hash_into(h, "x");`
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

struct XXH3_state_s;  // of xxhash.h

namespace stretto {

std::uint64_t hash_bytes(const void* data, std::size_t bytes, std::uint64_t seed = 0);

// The same value as hash_bytes, of bytes that come in parts.
class StreamHash {
 public:
  StreamHash();
  ~StreamHash();
  StreamHash(const StreamHash&) = delete;
  void add(const void* data, std::size_t bytes);
  std::uint64_t value() const;

 private:
  XXH3_state_s* state_;
};

inline void hash_into(std::uint64_t& h, std::string_view s) {
  h = hash_bytes(s.data(), s.size(), h + 0x9E3779B97F4A7C15ull);
}
template <class T>
requires std::is_arithmetic_v<T> || std::is_enum_v<T>
void hash_into(std::uint64_t& h, T v) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof v);
  h = (h ^ bits) * 0xD6E8FEB86659FD93ull;
  h ^= h >> 32;
  h *= 0xD6E8FEB86659FD93ull;
  h ^= h >> 29;
}
template <class... T>
std::uint64_t hash_of(const T&... v) {
  std::uint64_t h = 0x243F6A8885A308D3ull;
  (hash_into(h, v), ...);
  return h;
}

}  // namespace stretto
