#include "stretto/kernels/normal.h"

#include <algorithm>

#include "stretto/kernels/cpu/vector_math.h"

namespace stretto {
namespace {

constexpr int lanes = 8;  // blocks at a time; a block is one Philox call: four numbers
constexpr int per_round = lanes * 4;

// sin and cos of a turn's part in [-1/8, 1/8], times the sign and swap of its quadrant. Polynomials: Taylor, within 2
// ulp.
STRETTO_INLINE void on_circle(std::uint32_t bits, float& c, float& s) {
  const std::int32_t quadrant = std::int32_t((bits + 0x20000000u) >> 30);
  const float x = float(std::int32_t(bits - (std::uint32_t(quadrant) << 30))) * (6.28318530717958647692f * 0x1p-32f),
              y = x * x;
  const float sine = x * vm::polynomial(y, 1.f, -1.f / 6, 1.f / 120, -1.f / 5040, 1.f / 362880);
  const float cosine = vm::polynomial(y, 1.f, -1.f / 2, 1.f / 24, -1.f / 720, 1.f / 40320);
  const bool swap = quadrant & 1;
  const float a = swap ? -sine : cosine, b = swap ? cosine : sine;
  c = quadrant & 2 ? -a : a;
  s = quadrant & 2 ? -b : b;
}

// Blocks first_block .. first_block + 7 into 32 numbers.
void round(PhiloxKey key, std::uint64_t first_block, float* to) {
  std::uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
  for (int l = 0; l < lanes; ++l) {
    const std::uint64_t b = first_block + std::uint64_t(l);
    c0[l] = std::uint32_t(b), c1[l] = std::uint32_t(b >> 32), c2[l] = 2, c3[l] = 0;
  }
  for (int r = 0; r < 10; ++r, key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u)
    for (int l = 0; l < lanes; ++l) {
      const std::uint64_t a = std::uint64_t(0xD2511F53u) * c0[l], b = std::uint64_t(0xCD9E8D57u) * c2[l];
      c0[l] = std::uint32_t(b >> 32) ^ c1[l] ^ key[0], c1[l] = std::uint32_t(b);
      c2[l] = std::uint32_t(a >> 32) ^ c3[l] ^ key[1], c3[l] = std::uint32_t(a);
    }
  float x[4][lanes];
  for (int l = 0; l < lanes; ++l) {
    // (0, 1): its logarithm is finite.
    const float u = (float(c0[l] >> 8) + 0.5f) * 0x1p-24f, v = (float(c2[l] >> 8) + 0.5f) * 0x1p-24f;
    const float p = __builtin_sqrtf(-2 * vm::log(u)), q = __builtin_sqrtf(-2 * vm::log(v));
    float c, s;
    on_circle(c1[l], c, s);
    x[0][l] = p * c, x[1][l] = p * s;
    on_circle(c3[l], c, s);
    x[2][l] = q * c, x[3][l] = q * s;
  }
  for (int l = 0; l < lanes; ++l)
    for (int k = 0; k < 4; ++k) to[4 * l + k] = x[k][l];
}

template <class T>
void fill(PhiloxKey key, std::uint64_t first, double scale, std::span<T> to) {
  alignas(64) float numbers[per_round];
  std::size_t done = 0;
  while (done < to.size()) {
    const std::uint64_t at = first + done,
                        start = at / per_round * per_round;  // rounds start at multiples: bits do not depend on `first`
    round(key, start / 4, numbers);
    const std::size_t skip = std::size_t(at - start), n = std::min(to.size() - done, std::size_t(per_round) - skip);
    for (std::size_t i = 0; i < n; ++i) to[done + i] = T(scale * double(numbers[skip + i]));
    done += n;
  }
}

}  // namespace

void fill_normal(PhiloxKey key, std::uint64_t first, double scale, std::span<float> to) { fill(key, first, scale, to); }
void fill_normal(PhiloxKey key, std::uint64_t first, double scale, std::span<double> to) {
  fill(key, first, scale, to);
}

}  // namespace stretto
