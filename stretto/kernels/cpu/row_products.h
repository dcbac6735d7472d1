// Products of f32 rows that lie anywhere: what a product of the library would have gathered before and scattered after
// is read where it is packed and written where it belongs. Sums are cut as the library cuts them: bits are the same.
//
//   if (multiplies_rows({m, n, k}))
//     multiply_rows({{m, n, k}, {.data = x, .at = from}, {.data = w, .step = n, .summed = true},
//                    {.data = y, .at = to}}, scratch);       // choosing::RowPanels::floats(m, n, k) of it
#pragma once
#include <algorithm>

#include "stretto/base/id.h"

namespace stretto {

// Lines of an operand: its rows on the left and its columns on the right, or what is summed over.
struct ProductLines {
  const float* data = nullptr;
  const i64* at = nullptr;  // where each begins; null: one every `step`
  i64 step = 0;
  bool summed = false;
  const float* line(i64 i) const { return data + (at ? at[i] : i * step); }
};
struct ProductRows {
  float* data = nullptr;
  const i64* at = nullptr;
  i64 step = 0;
  bool add = false;       // to what is there
  bool in_parts = false;  // every part of a sum by itself, as the library does, and not when it is complete
  float* row(i64 i) const { return data + (at ? at[i] : i * step); }
};
struct ProductSize {
  i64 m = 0, n = 0, k = 0;
};
struct RowProduct {
  ProductSize size;
  ProductLines left, right;
  ProductRows out;
};

// Compares them with the library's, once. When kernels are prepared: it takes memory, which a step does not.
void find_row_products();
// Is it the library's product to the last bit, on a processor that has the instructions? Small ones are not: the
// library has other ways for them.
bool multiplies_rows(const ProductSize&);
void multiply_rows(const RowProduct&, float* scratch);

}  // namespace stretto
