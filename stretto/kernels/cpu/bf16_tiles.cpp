#include "stretto/kernels/cpu/bf16_tiles.h"

#include "stretto/base/error.h"
#include "stretto/base/processor.h"
#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "stretto/kernels/cpu/turn_words.h"
#define STRETTO_BF16_TILES 1
#else
#define STRETTO_BF16_TILES 0
#endif

namespace stretto {
#if STRETTO_BF16_TILES
namespace {

// These functions are compiled for more than the rest of this file.
#define FOR_PACKING __attribute__((target("avx512f,avx512bw,avx512vl")))
#define FOR_DOTS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define FOR_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl")))

// Linux gives the memory of tiles to processes that have asked for it.
bool system_allows() {
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM
  return ::syscall(SYS_arch_prctl, request, tile_data) == 0;
}

constexpr i64 tile_lines = 16, tile_pairs = 16, tile_size = tile_lines * tile_pairs * 2;  // numbers

// 16 lines of 32 numbers each; what is not there is zero.
FOR_PACKING void lines_of_32(const BF16* from, i64 line, i64 lines, i64 length, WordLines& v) {
  const __mmask32 there = length >= 32 ? ~0u : (1u << std::max<i64>(length, 0)) - 1;
  for (i64 i = 0; i < 16; ++i)
    v[i] = i < lines ? _mm512_maskz_loadu_epi16(there, from + i * line) : _mm512_setzero_si512();
}
// 32 lines of 16 numbers each, two and two side by side.
FOR_PACKING void pairs_of_16(const BF16* from, i64 line, i64 lines, i64 length, WordLines& v) {
  const __mmask16 there = length >= 16 ? 0xFFFF : (1u << std::max<i64>(length, 0)) - 1;
  for (i64 i = 0; i < 16; ++i) {
    __m512i first = _mm512_setzero_si512(), second = first;
    if (2 * i < lines) first = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, from + 2 * i * line));
    if (2 * i + 1 < lines) second = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, from + (2 * i + 1) * line));
    v[i] = _mm512_or_si512(first, _mm512_slli_epi32(second, 16));
  }
}
FOR_PACKING void store(const WordLines& v, BF16* to) {
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * 32, v[i]);
}

// A tile's 16 rows of the left side (or columns of the right one) by 32 numbers that are summed over.
FOR_PACKING void pack_tile(const Bf16Matrix& m, i64 line, i64 lines, i64 summed, i64 sums, bool paired, bool turned,
                           BF16* to) {
  WordLines v;
  if (paired)
    pairs_of_16(m.data + summed * m.line + line, m.line, sums, lines, v);
  else
    lines_of_32(m.data + line * m.line + summed, m.line, lines, sums, v);
  if (turned) turn_words(v);
  store(v, to);
}

// Both sides lie as to[line / 16][summed / 32] of tiles: one walks through memory as one sums.
void pack(const Bf16Matrix& m, i64 lines, i64 sums, bool paired, bool turned, BF16* to) {
  for (i64 line = 0; line < (lines + 31) / 32 * 32; line += tile_lines)
    for (i64 k = 0; k < sums; k += 32, to += tile_size)
      pack_tile(m, line, lines - line, k, sums - k, paired, turned, to);
}

struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};

FOR_AMX void begin_amx() {
  TileShapes shapes;
  for (int i = 0; i < 8; ++i) shapes.bytes_per_row[i] = 64, shapes.rows[i] = 16;
  _tile_loadconfig(&shapes);
}
FOR_AMX void end_amx() { _tile_release(); }

// 32 x 32 of the result: four tiles, from two of each side at a time.
FOR_AMX void amx_square(i64 tiles, const BF16* left, const BF16* right, float* sums) {
  const BF16 *left2 = left + tiles * tile_size, *right2 = right + tiles * tile_size;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (i64 i = 0; i < tiles; ++i) {
    const i64 at = i * tile_size;
    _tile_loadd(4, left + at, 64);
    _tile_loadd(6, right + at, 64);
    _tile_loadd(5, left2 + at, 64);
    _tile_loadd(7, right2 + at, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, bf16_square * 4);
  _tile_stored(1, sums + 16, bf16_square * 4);
  _tile_stored(2, sums + 16 * bf16_square, bf16_square * 4);
  _tile_stored(3, sums + 16 * bf16_square + 16, bf16_square * 4);
}

// Eight rows of the result by 32 columns stay in registers: as many as leave room for both operands.
constexpr int dot_rows = 8;
FOR_DOTS void dots_of_rows(i64 tiles, const BF16* left, const BF16* right, float* sums) {
  const BF16* right2 = right + tiles * tile_size;
  __m512 first[dot_rows], second[dot_rows];
#pragma GCC unroll 8
  for (int r = 0; r < dot_rows; ++r) first[r] = second[r] = _mm512_setzero_ps();
  for (i64 i = 0; i < tiles * tile_size; i += tile_size)
    for (i64 p = 0; p < tile_pairs; ++p) {
      const __m512bh b = (__m512bh)_mm512_loadu_si512(right + i + p * 32);
      const __m512bh b2 = (__m512bh)_mm512_loadu_si512(right2 + i + p * 32);
#pragma GCC unroll 8
      for (int r = 0; r < dot_rows; ++r) {
        int pair;
        std::memcpy(&pair, left + i + r * 32 + p * 2, sizeof pair);
        const __m512bh a = (__m512bh)_mm512_set1_epi32(pair);
        first[r] = _mm512_dpbf16_ps(first[r], a, b);
        second[r] = _mm512_dpbf16_ps(second[r], a, b2);
      }
    }
#pragma GCC unroll 8
  for (int r = 0; r < dot_rows; ++r) {
    _mm512_storeu_ps(sums + r * bf16_square, first[r]);
    _mm512_storeu_ps(sums + r * bf16_square + 16, second[r]);
  }
}
FOR_DOTS void dots_square(i64 tiles, const BF16* left, const BF16* right, float* sums) {
  for (i64 r = 0; r < bf16_square; r += dot_rows)
    dots_of_rows(tiles, left + r / tile_lines * tiles * tile_size + r % tile_lines * 32, right, sums + r * bf16_square);
}

// How a square of the result is made, best first.
struct TileForm {
  std::string_view name;
  bool (*usable)();
  void (*begin)();
  void (*square)(i64 tiles, const BF16* left, const BF16* right, float* sums);
  void (*end)();
};
constexpr TileForm tile_forms[] = {
    {"amx", [] { return usable_processor().amx_bf16 && system_allows(); }, begin_amx, amx_square, end_amx},
    {"avx512_bf16", [] { return usable_processor().avx512_bf16; }, [] {}, dots_square, [] {}},
};
const TileForm* chosen_form() {
  static const TileForm* const chosen = [] {
    const TileForm* const found = std::ranges::find_if(tile_forms, [](const TileForm& f) { return f.usable(); });
    return found == std::end(tile_forms) ? nullptr : found;
  }();
  return chosen;
}

}  // namespace

std::string_view bf16_form() { return chosen_form() ? chosen_form()->name : std::string_view(); }
void bf16_pack_left(const Bf16Matrix& m, Bf16Size s, BF16* to) { pack(m, s.rows, s.columns, m.turned, m.turned, to); }
void bf16_pack_right(const Bf16Matrix& m, Bf16Size s, BF16* to) { pack(m, s.columns, s.rows, !m.turned, m.turned, to); }
void bf16_multiply(i64 m, i64 n, i64 k, const BF16* left, const BF16* right, Bf16Take take, void* context) {
  const TileForm& form = *chosen_form();
  form.begin();
  alignas(64) float sums[bf16_square * bf16_square];
  const i64 tiles = (k + 31) / 32;
  for (i64 c = 0; c < n; c += bf16_square)
    for (i64 r = 0; r < m; r += bf16_square) {
      form.square(tiles, left + r / 16 * tiles * tile_size, right + c / 16 * tiles * tile_size, sums);
      take(context, {sums, r, std::min(bf16_square, m - r), c, std::min(bf16_square, n - c)});
    }
  form.end();
}
#else
std::string_view bf16_form() { return {}; }
void bf16_pack_left(const Bf16Matrix&, Bf16Size, BF16*) { STRETTO_ASSERT(false, "there are no products of bf16"); }
void bf16_pack_right(const Bf16Matrix&, Bf16Size, BF16*) { STRETTO_ASSERT(false, "there are no products of bf16"); }
void bf16_multiply(i64, i64, i64, const BF16*, const BF16*, Bf16Take, void*) {
  STRETTO_ASSERT(false, "there are no products of bf16");
}
#endif

}  // namespace stretto
