#include "support/buffer.h"

#include <cstring>

#include "stretto/base/bf16.h"

namespace stretto::test {

double Buffer::at(i64 i) const {
  if (dtype_ == f32) return double(reinterpret_cast<const float*>(data())[i]);
  if (dtype_ == f64) return reinterpret_cast<const double*>(data())[i];
  if (dtype_ == bf16) return double(reinterpret_cast<const BF16*>(data())[i]);
  return double(reinterpret_cast<const std::int32_t*>(data())[i]);
}

void Buffer::set(i64 i, double value) {
  if (dtype_ == f32)
    reinterpret_cast<float*>(data())[i] = float(value);
  else if (dtype_ == f64)
    reinterpret_cast<double*>(data())[i] = value;
  else if (dtype_ == bf16)
    reinterpret_cast<BF16*>(data())[i] = BF16(value);
  else
    reinterpret_cast<std::int32_t*>(data())[i] = std::int32_t(value);
}

u64 Buffer::bits(i64 i) const {
  u64 b = 0;
  std::memcpy(&b, data() + i * i64(size_of(dtype_)), size_of(dtype_));
  return b;
}

void for_each_index(const std::vector<i64>& sizes, const std::function<void(const std::vector<i64>&)>& f) {
  std::vector<i64> index(sizes.size(), 0);
  for (i64 s : sizes)
    if (s == 0) return;
  while (true) {
    f(index);
    std::size_t d = sizes.size();
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

i64 offset_in(const View& v, const std::vector<i64>& index) {
  i64 at = 0;
  for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * v.strides[d];
  return at;
}

bool is_padding(const View& v, const std::vector<i64>& index) {
  for (std::size_t d = 0; d < index.size(); ++d)
    if (v.offsets[d] + index[d] >= v.limits[d]) return true;
  return false;
}

Buffer gathered(const View& v, const std::byte* first) {
  Buffer b(v.dtype, v.elements());
  const i64 bytes = i64(size_of(v.dtype));
  i64 i = 0;
  for_each_index(v.sizes, [&](const std::vector<i64>& index) {
    std::memcpy(b.element(i++), first + offset_in(v, index) * bytes, std::size_t(bytes));
  });
  return b;
}

}  // namespace stretto::test
