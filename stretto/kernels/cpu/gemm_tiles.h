// How a long matrix product is cut, so that messages move on between its parts. The cut depends on the sizes alone and
// is made under every layout and transport: the order in which a result is summed never depends on them.
//
// Sums are cut first, where the library cuts them anyway; then rows and columns, for which operands are copied once
// more (bench/cuts shows what that costs).
//
//   for_gemm_tiles(gemm_tiles(m, n, k, sizeof(float), 2), m, n, k, [&](GemmTile t) { ... });    // about 2 ms each
#pragma once
#include <algorithm>
#include <cmath>

#include "stretto/base/id.h"

namespace stretto {

struct GemmTiles {
  i64 m = 0, n = 0, k = 0;  // sizes of a tile; the last ones may be smaller
};

// Multiplications of floats in a millisecond of one core, roughly. The same for every machine, as results depend on it.
inline constexpr double multiplications_in_ms = 4.5e7;

// `ms`: about how long a part may take; 0: the product stays whole.
inline GemmTiles gemm_tiles(i64 m, i64 n, i64 k, std::size_t element, double ms) {
  const double in_ms = multiplications_in_ms * 4 / double(element);
  GemmTiles t{m, n, k};
  if (ms == 0 || double(m) * double(n) * double(k) <= 1.2 * ms * in_ms) return t;
  // As many as needed of at most `size`, of nearly equal sizes that suit vector registers.
  const auto evenly = [](i64 whole, double size) {
    const double parts = std::ceil(double(whole) / std::max(64.0, size));
    return std::min(whole, i64(std::ceil(double(whole) / parts / 16)) * 16);
  };
  t.k = evenly(k, 384);
  // Squares need the fewest copies of operands; what one side does not use, the other may.
  const double area = ms * in_ms / double(t.k), side = std::sqrt(area);
  i64 &shorter = m <= n ? t.m : t.n, &longer = m <= n ? t.n : t.m;
  shorter = evenly(shorter, side);
  longer = evenly(longer, area / double(shorter));
  return t;
}

struct GemmTile {
  i64 m0, m, n0, n, k0, k;
};
template <class F>
void for_gemm_tiles(const GemmTiles& t, i64 m, i64 n, i64 k, F&& f) {
  i64 m0 = 0, n0 = 0, k0 = 0;
  const auto along = [](i64 whole, i64 size, i64& at, auto&& body) {
    for (at = 0; at == 0 || at < whole; at += std::max<i64>(1, size)) body(std::min(size, whole - at));
  };
  along(m, t.m, m0, [&](i64 mm) {
    along(n, t.n, n0, [&](i64 nn) { along(k, t.k, k0, [&](i64 kk) { f(GemmTile{m0, mm, n0, nn, k0, kk}); }); });
  });
}

}  // namespace stretto
