#include <limits>

#include "stretto/kernels/cpu/pointwise/pointwise.h"

namespace stretto {
namespace {

// Floats beyond the range of i32 and NaN become the smallest integer, as the hardware has it.
template <class To, class From>
To converted(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return x >= From(-0x1p31) && x < From(0x1p31) ? To(x) : std::numeric_limits<To>::min();
  else
    return To(x);
}

template <class To, class From>
void cast_loop(void* out, const void* const* in, i64 n) {
  To* o = static_cast<To*>(__builtin_assume_aligned(out, 64));
  const From* a = static_cast<const From*>(__builtin_assume_aligned(in[0], 64));
  for (i64 i = 0; i < n; ++i) o[i] = converted<To>(a[i]);
}

template <class To>
Tile cast_from(DType from) {
  return from == f32   ? &cast_loop<To, float>
         : from == f64 ? &cast_loop<To, double>
         : from == i32 ? &cast_loop<To, std::int32_t>
                       : nullptr;
}

}  // namespace

Tile cast_tile(std::span<const DType> in, DType out) {
  return out == f32   ? cast_from<float>(in[0])
         : out == f64 ? cast_from<double>(in[0])
         : out == i32 ? cast_from<std::int32_t>(in[0])
                      : nullptr;
}

}  // namespace stretto
