// One element of bf16 memory. It is stored only: whatever is computed with it is computed as f32 (`Wide<T>`) and
// rounded once, to the nearest and of two equally near to the even one, where it is stored.
//
//   for (i64 i = 0; i < n; ++i) y[i] = BF16(factor * x[i]);      // x and y: BF16*; the loop vectorises
#pragma once
#include <type_traits>

#include "stretto/base/half.h"
#include "stretto/base/id.h"

namespace stretto {

class BF16 {
 public:
  BF16() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit BF16(T value) {
    if constexpr (std::is_same_v<T, double>)
      bits_ = bf16_of(value);
    else
      bits_ = bf16_of(float(value));
  }
  operator float() const { return f32_of_bf16(bits_); }

 private:
  std::uint16_t bits_;
};
static_assert(sizeof(BF16) == 2 && std::is_trivially_copyable_v<BF16>);

// What elements of a type are computed in.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, BF16>, float, T>;

inline void widen(const BF16* from, i64 n, float* to) {
  for (i64 i = 0; i < n; ++i) to[i] = from[i];
}
inline void narrow(const float* from, i64 n, BF16* to) {
  for (i64 i = 0; i < n; ++i) to[i] = BF16(from[i]);
}

}  // namespace stretto
