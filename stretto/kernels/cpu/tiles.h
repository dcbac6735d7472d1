// Small matrix products on packed panels, for kernels that fuse products with other work. A panel holds panel_width
// columns of a matrix, row after row; missing columns are zero. Packing widens what is stored in bf16 (S) to what is
// computed with (T, Wide<S>), unpacking rounds it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "stretto/base/bf16.h"
#include "stretto/kernels/cpu/pack.h"
#include "stretto/kernels/cpu/tile_forms.h"

namespace stretto {

inline constexpr i64 tile_rows = 6;
template <class T>
inline constexpr i64 panel_width = i64(64 / sizeof(T));

// c[6][width] = (add ? c : 0) + sum over k of a[6][k] * panel[k][width]. turned: a is stored as [k][6].
template <class T, bool turned>
inline void multiply_tile(i64 k, const T* a, i64 pitch_a, const T* panel, T* c, i64 pitch_c, bool add) {
  const TileForm<T>& form = tile_form<T>();
  (turned ? form.turned : form.plain)(k, a, pitch_a, panel, c, pitch_c, add);
}

// A matrix somewhere in memory.
template <class T>
struct Strided {
  T* data;
  i64 row, column;  // strides
  Strided from_row(i64 r) const { return {data + r * row, row, column}; }
};

// The loops below, with a step that is known to be 1 where it is.
template <class F>
inline void with_step(i64 step, const F& f) {
  step == 1 ? f(std::integral_constant<i64, 1>{}) : f(step);
}

// Rows are far apart: without a hint every one would be waited for.
template <class S>
inline void expect_row(Strided<const S> m, i64 row, i64 rows, i64 columns) {
  if (row >= rows || m.column != 1) return;
  for (i64 c = 0; c < columns; c += i64(64 / sizeof(S))) __builtin_prefetch(m.data + row * m.row + c);
}
inline constexpr i64 rows_ahead = 12;

// rows x columns as panels of `padded` rows each: to[column / width][row][column % width].
template <class S, class T = Wide<S>>
void pack_panels(Strided<const S> from, i64 rows, i64 columns, i64 padded, T* to) {
  constexpr i64 w = panel_width<T>;
  with_step(from.column, [&](auto step) {
    for (i64 r = 0; r < padded; ++r) {
      expect_row(from, r + rows_ahead, rows, columns);
      const S* x = from.data + r * from.row;
      T* y = to + r * w;
      i64 c = 0;
      for (; c + w <= columns && r < rows; c += w, x += w * step, y += padded * w)
        for (i64 i = 0; i < w; ++i) y[i] = x[i * step];
      for (; c < columns; c += w, y += padded * w)
        for (i64 i = 0; i < w; ++i) y[i] = r < rows && c + i < columns ? T(x[i * step]) : T(0);
    }
  });
}

// rows x columns into rows of `pitch` elements, `padded` of them.
template <class S, class T = Wide<S>>
void pack_rows(Strided<const S> from, i64 rows, i64 columns, i64 padded, i64 pitch, T factor, T* to) {
  with_step(from.column, [&](auto step) {
    for (i64 r = 0; r < rows; ++r) {
      expect_row(from, r + rows_ahead, rows, columns);
      const S* x = from.data + r * from.row;
      for (i64 c = 0; c < columns; ++c) to[r * pitch + c] = x[c * step] * factor;
      for (i64 c = columns; c < pitch; ++c) to[r * pitch + c] = T(0);
    }
    std::fill(to + rows * pitch, to + padded * pitch, T(0));
  });
}

template <class S, class T = Wide<S>>
void unpack_rows(const T* from, i64 pitch, i64 rows, i64 columns, T factor, Strided<S> to) {
  with_step(to.column, [&](auto step) {
    for (i64 r = 0; r < rows; ++r)
#pragma GCC ivdep
      for (i64 c = 0; c < columns; ++c) to.data[r * to.row + c * step] = S(from[r * pitch + c] * factor);
  });
}

#if STRETTO_AVX2
inline __m256 load_8(const float* p) { return _mm256_loadu_ps(p); }
inline __m256 load_8(const BF16* p) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
// to[c * to_pitch + r] = from[r * from_pitch + c] for 8 x 8 elements.
template <class S>
inline void turn_8x8(const S* from, i64 from_pitch, float* to, i64 to_pitch) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = load_8(from + i * from_pitch);
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_pitch, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_pitch, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}
#endif

// The transpose as panels: to[row / width][column][row % width], for `padded` rows and panels of `pitch` columns.
template <class S, class T = Wide<S>>
void pack_turned(Strided<const S> from, i64 rows, i64 columns, i64 padded, i64 pitch, T* to) {
  constexpr i64 w = panel_width<T>;
  for (i64 r = 0; r < padded; r += w, to += w * pitch) {
    for (i64 i = 0; i < w; ++i) expect_row(from, r + w + i, rows, columns);
    i64 c = 0;
#if STRETTO_AVX2
    if constexpr (sizeof(T) == 4)
      if (from.column == 1 && r + w <= rows)
        for (; c + 8 <= columns; c += 8) {
          turn_8x8(from.data + r * from.row + c, from.row, to + c * w, w);
          turn_8x8(from.data + (r + 8) * from.row + c, from.row, to + c * w + 8, w);
        }
#endif
    for (; c < columns; ++c)
      for (i64 i = 0; i < w; ++i)
        to[c * w + i] = r + i < rows ? T(from.data[(r + i) * from.row + c * from.column]) : T(0);
  }
}

}  // namespace stretto
