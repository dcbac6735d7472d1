// Many Philox blocks with successive counters at once: block first + i is words 4i .. 4i+3.
//
//   alignas(64) std::uint32_t words[64];
//   philox_blocks<16>(key, first, row, step, words);      // = philox({first lo, first hi, row, step}, key), ...
#pragma once
#include "stretto/base/philox.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace stretto {

template <int count>
void philox_blocks(PhiloxKey key, std::uint64_t first, std::uint32_t row, std::uint32_t step, std::uint32_t* words) {
  static_assert(count % 4 == 0);
  for (int block = 0; block < count; block += 4, first += 4, words += 16) {
#ifdef __AVX2__
    // One block per 64-bit lane, in its low half: the product of two low halves is one instruction. What is left in the
    // high halves is never looked at. (The compiler's own vectorisation takes twice the time.)
    const auto all = [](std::uint32_t v) { return _mm256_set1_epi64x(v); };
    __m256i c0 = _mm256_add_epi64(_mm256_set1_epi64x(std::int64_t(first)), _mm256_set_epi64x(3, 2, 1, 0));
    __m256i c1 = _mm256_srli_epi64(c0, 32), c2 = all(row), c3 = all(step);
    PhiloxKey k = key;
    for (int round = 0; round < 10; ++round, k[0] += 0x9E3779B9u, k[1] += 0xBB67AE85u) {
      const __m256i a = _mm256_mul_epu32(all(0xD2511F53u), c0), b = _mm256_mul_epu32(all(0xCD9E8D57u), c2);
      c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(b, 32), c1), all(k[0]));
      c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(a, 32), c3), all(k[1]));
      c1 = b;
      c3 = a;
    }
    const __m256i front = _mm256_blend_epi32(c0, _mm256_slli_epi64(c1, 32), 0xAA);  // words 0 and 1 of each block
    const __m256i back = _mm256_blend_epi32(c2, _mm256_slli_epi64(c3, 32), 0xAA);   // words 2 and 3
    const __m256i even = _mm256_unpacklo_epi64(front, back), odd = _mm256_unpackhi_epi64(front, back);
    __m256i* to = reinterpret_cast<__m256i*>(words);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
#else
    for (std::uint64_t i = 0; i < 4; ++i) {
      const std::uint64_t at = first + i;
      const Philox4 w = philox({std::uint32_t(at), std::uint32_t(at >> 32), row, step}, key);
      for (int j = 0; j < 4; ++j) words[4 * i + std::uint64_t(j)] = w[std::size_t(j)];
    }
#endif
  }
}

}  // namespace stretto
