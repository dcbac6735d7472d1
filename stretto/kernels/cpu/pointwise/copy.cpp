#include <cstring>

#include "stretto/kernels/cpu/pointwise/pointwise.h"

namespace stretto {
namespace {
template <std::size_t bytes>
void copy_loop(void* out, const void* const* in, i64 n) {
  if (out != in[0]) std::memcpy(out, in[0], std::size_t(n) * bytes);
}
}  // namespace

Tile copy_tile(std::span<const DType> in, DType out) {
  if (in[0] != out) return nullptr;
  return size_of(out) == 8 ? &copy_loop<8> : size_of(out) == 4 ? &copy_loop<4> : nullptr;
}
}  // namespace stretto
