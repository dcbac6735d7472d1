#include "stretto/formats/token_span.h"

#include <cstring>

#include "stretto/formats/inner/visit_type.h"

namespace stretto {
namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T>
constexpr bool is_token = std::is_integral_v<T> && !std::is_same_v<T, std::uint64_t>;

// Calls f with a value of the integer type that `type` stands for.
template <class F>
auto with_token(FileType type, F f) {
  return visit_type(type, [&]<class T>(T stored) -> decltype(f(std::int32_t{})) {
    if constexpr (is_token<T>) return f(stored);
    throw Error("tokens", "{} is no type for tokens", name_of(type));
  });
}

}  // namespace

TokenSpan TokenSpan::part(i64 begin, i64 count) const {
  if (begin < 0 || count < 0 || begin > size() || count > size() - begin)
    throw Error("tokens", "{} tokens from position {} are wanted, but there are {}", count, begin, size());
  return {type, bytes.subspan(std::size_t(begin) * size_of(type), std::size_t(count) * size_of(type))};
}

void TokenSpan::read(i64 begin, std::span<std::int32_t> to) const {
  const TokenSpan wanted = part(begin, i64(to.size()));
  read_values<std::int32_t>({type, {wanted.size()}, wanted.bytes}, to, "tokens");
}

i64 TokenSpan::at(i64 position) const {
  const TokenSpan one = part(position, 1);
  return with_token(type, [&]<class T>(T) { return i64(load<T>(one.bytes.data())); });
}

std::optional<i64> TokenSpan::first_outside(i64 vocabulary) const {
  return with_token(type, [&]<class T>(T) -> std::optional<i64> {
    // Blocks without a branch inside run at the speed of memory; only one with a bad token is looked at closely.
    constexpr i64 block = 4096;
    const i64 count = size();
    for (i64 begin = 0; begin < count; begin += block) {
      const i64 n = std::min(block, count - begin);
      const std::byte* from = bytes.data() + std::size_t(begin) * sizeof(T);
      bool outside = false;
      for (i64 i = 0; i < n; ++i) {
        const i64 token = i64(load<T>(from + std::size_t(i) * sizeof(T)));
        outside |= (token < 0) | (token >= vocabulary);
      }
      if (!outside) continue;
      for (i64 i = 0; i < n; ++i) {
        const i64 token = i64(load<T>(from + std::size_t(i) * sizeof(T)));
        if (token < 0 || token >= vocabulary) return begin + i;
      }
    }
    return std::nullopt;
  });
}

}  // namespace stretto
