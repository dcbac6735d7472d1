// Products of bf16 matrices by the processor's own instructions for them: tiles of 16 x 32 by 32 x 16 numbers, added up
// in f32. AMX multiplies whole tiles, AVX512_BF16 a row of one by the other.
//
//   if (!bf16_form().empty()) {                                       // the processor, and the system allows it
//     bf16_pack_left(a, {m, k}, left), bf16_pack_right(b, {k, n}, right);
//     bf16_multiply(m, n, k, left, right, [&](const Bf16Square& r) { ... });   // up to 32 x 32 of the result at a time
//   }
#pragma once
#include <string_view>

#include "stretto/base/bf16.h"

namespace stretto {

// "amx", "avx512_bf16", or nothing where the processor has neither; asks once.
std::string_view bf16_form();

// rows x columns, one line after the other: `turned` lines are columns.
struct Bf16Matrix {
  const BF16* data = nullptr;
  i64 line = 1;  // elements from one to the next
  bool turned = false;
};
struct Bf16Size {
  i64 rows = 0, columns = 0;
};
// Numbers in packed form: both sides in whole tiles.
constexpr i64 bf16_packed(i64 rows_or_columns, i64 summed) {
  return (rows_or_columns + 31) / 32 * 32 * ((summed + 31) / 32 * 32);
}
void bf16_pack_left(const Bf16Matrix&, Bf16Size, BF16* to);
void bf16_pack_right(const Bf16Matrix&, Bf16Size, BF16* to);

constexpr i64 bf16_square = 32;
// Row r, column c is sums[r * bf16_square + c].
struct Bf16Square {
  const float* sums;
  i64 row, rows, column, columns;
};
// From packed operands, and all squares of the result one after the other; `take` gets them and `context`.
using Bf16Take = void (*)(void* context, const Bf16Square&);
void bf16_multiply(i64 m, i64 n, i64 k, const BF16* left, const BF16* right, Bf16Take take, void* context);
template <class F>
void bf16_multiply(i64 m, i64 n, i64 k, const BF16* left, const BF16* right, F&& take) {
  bf16_multiply(
      m, n, k, left, right, [](void* f, const Bf16Square& r) { (*static_cast<std::remove_reference_t<F>*>(f))(r); },
      &take);
}

// What was summed of a square goes to its place.
template <class O>
void put_square(const Bf16Square& r, bool add, O* out, i64 leading) {
  for (i64 i = 0; i < r.rows; ++i) {
    O* const to = out + (r.row + i) * leading + r.column;
    const float* const from = r.sums + i * bf16_square;
    if (add)
      for (i64 j = 0; j < r.columns; ++j) to[j] = O(to[j] + from[j]);
    else
      for (i64 j = 0; j < r.columns; ++j) to[j] = O(from[j]);
  }
}

}  // namespace stretto
