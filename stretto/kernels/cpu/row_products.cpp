#include "stretto/kernels/cpu/row_products.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/processor.h"
#include "stretto/kernels/cpu/blas.h"
#include "stretto/kernels/cpu/pack.h"
#include "stretto/kernels/cpu/products.h"
#include "stretto/kernels/cpu/turn_words.h"
#include "stretto/ops/choose.h"

namespace stretto {
#if STRETTO_AVX2
namespace {

using choosing::RowPanels;
constexpr i64 panel_rows = RowPanels::rows, panel_columns = RowPanels::columns;  // 24 registers hold their sums
// These functions are compiled for more than the rest of this file.
#define FOR_ROWS __attribute__((target("avx512f")))
constexpr __mmask16 first_lanes(i64 n) { return n >= 16 ? 0xFFFF : __mmask16((1u << std::max<i64>(n, 0)) - 1); }

// Panels are to[summed][width], one after the other; what they have beyond the last of `count` is zero. A line of what
// is summed goes through all of them: so memory is read from one end to the other.
template <i64 width>
FOR_ROWS void pack_summed(const ProductLines& from, i64 first, i64 count, i64 k0, i64 k, float* to) {
  for (i64 i = 0; i < k; ++i) {
    const float* const line = from.line(k0 + i) + first;
    float* panel = to + i * width;
    for (i64 at = 0; at < count; at += width, panel += k * width)
      for (i64 group = 0; group < width; group += 16) {
        const __mmask16 stored = first_lanes(width - group), loaded = first_lanes(count - at - group);
        _mm512_mask_storeu_epi32(panel + group, stored, _mm512_maskz_loadu_epi32(stored & loaded, line + at + group));
      }
  }
}
template <i64 width>
FOR_ROWS void pack_turned(const ProductLines& from, i64 first, i64 count, i64 k0, i64 k, float* to) {
  for (i64 group = 0; group < width; group += 16) {
    const __mmask16 stored = first_lanes(width - group);
    const float* lines[16];
    for (i64 i = 0; i < 16; ++i)
      lines[i] = group + i < std::min(width, count) ? from.line(first + group + i) + k0 : nullptr;
    for (i64 at = 0; at < k; at += 16) {
      WordLines v;
      const __mmask16 rest = first_lanes(k - at);
      for (int i = 0; i < 16; ++i)
        v[i] = lines[i] ? _mm512_maskz_loadu_epi32(rest, lines[i] + at) : _mm512_setzero_si512();
      turn_words(v);
      for (i64 i = 0; i < std::min<i64>(16, k - at); ++i)
        _mm512_mask_storeu_epi32(to + (at + i) * width + group, stored, v[i]);
    }
  }
}
template <i64 width>
void pack_panels(const ProductLines& from, i64 first, i64 count, i64 k0, i64 k, float* to) {
  if (from.summed) return pack_summed<width>(from, first, count, k0, k, to);
  for (i64 at = 0; at < count; at += width) pack_turned<width>(from, first + at, count - at, k0, k, to + at * k);
}

// Where a tile of the result goes.
struct TileEnd {
  float* rows[panel_rows];
  i64 count, columns;   // of it that are there
  const float* before;  // the sums so far, as a tile; null: none
  bool add;             // to what is there
};

// A row of zeros is added to as well: the library clears what it then adds to.
FOR_ROWS void multiply_tile(i64 k, const float* left, const float* right, const TileEnd& end) {
  __m512 sums[panel_rows][2];
#pragma GCC unroll 12
  for (i64 r = 0; r < panel_rows; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
#pragma GCC unroll 2
  for (i64 i = 0; i < k; ++i, left += panel_rows, right += panel_columns) {
    const __m512 first = _mm512_loadu_ps(right), second = _mm512_loadu_ps(right + 16);
    _mm_prefetch(right + 8 * panel_columns, _MM_HINT_T0);
    _mm_prefetch(right + 8 * panel_columns + 16, _MM_HINT_T0);
#pragma GCC unroll 12
    for (i64 r = 0; r < panel_rows; ++r) {
      const __m512 x = _mm512_set1_ps(left[r]);
      sums[r][0] = _mm512_fmadd_ps(x, first, sums[r][0]);
      sums[r][1] = _mm512_fmadd_ps(x, second, sums[r][1]);
    }
  }
  const __mmask16 there[2] = {first_lanes(end.columns), first_lanes(end.columns - 16)};
#pragma GCC unroll 12
  for (i64 r = 0; r < panel_rows; ++r) {
    if (r >= end.count) continue;
#pragma GCC unroll 2
    for (i64 half = 0; half < 2; ++half) {
      float* const to = end.rows[r] + 16 * half;
      const float* const before = end.before ? end.before + r * panel_columns + 16 * half : nullptr;
      __m512 v = _mm512_add_ps(before ? _mm512_loadu_ps(before) : _mm512_setzero_ps(), sums[r][half]);
      if (end.add) v = _mm512_add_ps(_mm512_maskz_loadu_ps(there[half], to), v);
      _mm512_mask_storeu_ps(to, there[half], v);
    }
  }
}

// The part of a sum that the library makes next, of at most so many: its forms for AVX-512 differ in that alone.
constexpr i64 most_summed[] = {320, 448};
static_assert(std::ranges::max(most_summed) == RowPanels::summed);
i64 part_of(i64 left, i64 most) { return left >= 2 * most ? most : left > most ? (left / 2 + 15) / 16 * 16 : left; }

// One part of the sums of some columns: all panels of rows by all panels of those columns.
void multiply_panels(const RowProduct& p, i64 n0, i64 columns, i64 k0, i64 k, const float* left, const float* right,
                     float* tiles) {
  const bool first = k0 == 0, last = k0 + k == p.size.k;
  for (i64 j = 0; j < columns; j += panel_columns, right += panel_columns * k)
    for (i64 i = 0; i < p.size.m; i += panel_rows, tiles += panel_rows * panel_columns) {
      const bool ends = last || p.out.in_parts;
      TileEnd end{.count = std::min(panel_rows, p.size.m - i),
                  .columns = ends ? std::min(panel_columns, columns - j) : panel_columns,
                  .before = first || p.out.in_parts ? nullptr : tiles,
                  .add = ends && (p.out.add || (p.out.in_parts && !first))};
      for (i64 r = 0; r < end.count; ++r) end.rows[r] = ends ? p.out.row(i + r) + n0 + j : tiles + r * panel_columns;
      multiply_tile(k, left + i * k, right, end);
    }
}

void multiply(const RowProduct& p, i64 most, float* scratch) {
  const auto [m, n, k] = p.size;
  const i64 rows = RowPanels::whole(m, panel_rows);
  float *const left = scratch, *const right = left + rows * k, *const tiles = right + RowPanels::right(n, k);
  for (i64 k0 = 0, part = 0; k0 < k; k0 += part) {
    part = part_of(k - k0, most);
    pack_panels<panel_rows>(p.left, 0, m, k0, part, left + rows * k0);
  }
  for (i64 n0 = 0; n0 < n; n0 += RowPanels::most_columns) {
    const i64 columns = std::min(RowPanels::most_columns, n - n0);
    for (i64 k0 = 0, part = 0; k0 < k; k0 += part) {
      part = part_of(k - k0, most);
      pack_panels<panel_columns>(p.right, n0, columns, k0, part, right);
      multiply_panels(p, n0, columns, k0, part, left + rows * k0, right, tiles);
    }
  }
}

// The same product by the library and by this, with sums cut in this way.
bool alike(i64 most, ProductSize s, bool summed_left, bool summed_right) {
  std::vector<float> a(s.m * s.k), b(s.k * s.n), theirs(s.m * s.n, 0.5f), ours = theirs;
  u64 x = 1;
  const auto next = [&] {
    return float((x = x * 6364136223846793005u + 1442695040888963407u) >> 40) / (1 << 24) - 0.5f;
  };
  std::generate(a.begin(), a.end(), next);
  std::generate(b.begin(), b.end(), next);
  const i64 lda = summed_left ? s.m : s.k, ldb = summed_right ? s.n : s.k;
  gemm(summed_left, !summed_right, s.m, s.n, s.k, 1.f, a.data(), lda, b.data(), ldb, summed_left ? 1.f : 0.f,
       theirs.data(), s.n);
  std::vector<float> scratch(RowPanels::floats(s.m, s.n, s.k));
  multiply({.size = s,
            .left = {.data = a.data(), .step = lda, .summed = summed_left},
            .right = {.data = b.data(), .step = ldb, .summed = summed_right},
            .out = {.data = ours.data(), .step = s.n, .add = summed_left, .in_parts = summed_left}},
           most, scratch.data());
  return ours == theirs;
}
// How the library cuts sums here; none: in another way, or sums are made in another order.
std::optional<i64> library_cut() {
  if (!usable_processor().avx512) return {};
  reserve_products(1);  // with several threads it would cut in other places
  for (const i64 most : most_summed) {
    bool same = true;
    for (const i64 k : {350, 500, 1100}) {
      const ProductSize s{70, 9'000'000 / 70 / k, k};
      same = same && alike(most, s, false, false) && alike(most, s, false, true) && alike(most, s, true, true);
    }
    if (same) return most;
  }
  return {};
}
std::optional<i64> known_library_cut() {
  static const std::optional<i64> cut = library_cut();
  return cut;
}

}  // namespace

void find_row_products() { known_library_cut(); }
bool multiplies_rows(const ProductSize& s) {
  return double(s.m) * double(s.n) * double(s.k) >= 8e6 && known_library_cut();
}
void multiply_rows(const RowProduct& p, float* scratch) { multiply(p, *known_library_cut(), scratch); }
#else
void find_row_products() {}
bool multiplies_rows(const ProductSize&) { return false; }
void multiply_rows(const RowProduct&, float*) { STRETTO_ASSERT(false, "there are no products of rows"); }
#endif

}  // namespace stretto
