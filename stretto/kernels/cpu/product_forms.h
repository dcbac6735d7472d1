// Tiles of matrix products whose sums stay in registers, in the form that suits this processor: an ordered table, best
// first, of which the first that runs here is taken. In every form an element is one chain of fused multiplications and
// additions, from zero on and in ascending order of what is summed: its bits are those of every other.
//
//   const ProductForm<float>& form = product_form<float>();
//   form.tiles[1][form.rows - 1](k, left, right, c, pitch, false);       // a whole tile of sums of k products each
#pragma once
#include <span>
#include <string_view>

#include "stretto/base/id.h"
#include "stretto/base/processor.h"

namespace stretto {

// c[rows][columns] = (add ? c : 0) + sum over k of left[k][most_tile_rows] * right[k][columns of the form]
template <class T>
using ProductTile = void (*)(i64 k, const T* left, const T* right, T* c, i64 pitch, bool add);
constexpr i64 most_tile_rows = 12;  // panels of the left side have so many, whatever the form
template <class T>
struct ProductForm {
  std::string_view name;
  bool (*runs)(const Processor&);
  i64 rows = 0, lanes = 0;                  // of the largest tile; numbers in a register
  ProductTile<T> tiles[2][most_tile_rows];  // of one and of two registers' columns; of 1, 2, ... rows

  i64 columns() const { return 2 * lanes; }
};

template <class T>
std::span<const ProductForm<T>> product_forms();  // float, double
template <class T>
const ProductForm<T>& product_form();  // chosen once

}  // namespace stretto
