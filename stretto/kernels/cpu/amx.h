// Products of bf16 matrices by the processor's own instructions for them (AMX): it multiplies tiles of 16 x 32 by 32 x 16
// numbers and adds up in f32.
//
//   if (has_amx()) {                                                  // the processor, and the system allows it
//     amx_pack_left(a, {m, k}, left), amx_pack_right(b, {k, n}, right);
//     amx_multiply(m, n, k, left, right, [&](const AmxResult& r) { ... });   // up to 32 x 32 of the result at a time
//   }
#pragma once
#include "stretto/base/bf16.h"

namespace stretto {

bool has_amx();  // asks once

// rows x columns, one line after the other: `turned` lines are columns.
struct AmxMatrix {
  const BF16* data = nullptr;
  i64 line = 1;  // elements from one to the next
  bool turned = false;
};
struct AmxSize {
  i64 rows = 0, columns = 0;
};
// Numbers in packed form: both sides in whole tiles.
constexpr i64 amx_packed(i64 rows_or_columns, i64 summed) {
  return (rows_or_columns + 31) / 32 * 32 * ((summed + 31) / 32 * 32);
}
void amx_pack_left(const AmxMatrix&, AmxSize, BF16* to);
void amx_pack_right(const AmxMatrix&, AmxSize, BF16* to);

constexpr i64 amx_square = 32;
// Row r, column c is sums[r * amx_square + c].
struct AmxResult {
  const float* sums;
  i64 row, rows, column, columns;
};
// From packed operands, and all squares of the result one after the other; `take` gets them and `context`.
using AmxTake = void (*)(void* context, const AmxResult&);
void amx_multiply(i64 m, i64 n, i64 k, const BF16* left, const BF16* right, AmxTake take, void* context);
template <class F>
void amx_multiply(i64 m, i64 n, i64 k, const BF16* left, const BF16* right, F&& take) {
  amx_multiply(
      m, n, k, left, right, [](void* f, const AmxResult& r) { (*static_cast<std::remove_reference_t<F>*>(f))(r); },
      &take);
}

}  // namespace stretto
