// Products of matrices, and of rows that lie anywhere. What is summed is cut into blocks of product_block, always at
// the same places. The sum of a block is one chain of fused multiplications and additions, from zero on and in ascending
// order; sums of blocks are added, in ascending order, to what is there (add) or to each other. So an element has the
// same bits in every product that it is part of: however rows and columns are cut, wherever they lie, on any processor.
//
//   multiply<float>({{m, n, k}, {.data = x, .step = k}, {.data = w, .step = n, .summed = true}, {y, nullptr, n}});
//   gemm(false, false, m, n, k, x, k, w, n, false, y, n);       // the same
#pragma once
#include "stretto/base/id.h"

namespace stretto {

class Pauses;
template <class T>
struct ProductForm;

constexpr i64 product_block = 256;

// Lines of an operand: its rows on the left and its columns on the right, or what is summed over.
template <class T>
struct ProductLines {
  const T* data = nullptr;
  const i64* at = nullptr;  // where each begins; null: one every `step`
  i64 step = 0;
  bool summed = false;
  const T* line(i64 i) const { return data + (at ? at[i] : i * step); }
};
template <class T>
struct ProductRows {
  T* data = nullptr;
  const i64* at = nullptr;
  i64 step = 0;
  bool add = false;  // to what is there; of several rows at one place the first is added first
  T* row(i64 i) const { return data + (at ? at[i] : i * step); }
};
struct ProductSize {
  i64 m = 0, n = 0, k = 0;
};
template <class T>
struct MatrixProduct {
  ProductSize size;
  ProductLines<T> left, right;
  ProductRows<T> out;
};

template <class T>
void multiply(const MatrixProduct<T>&, Pauses* = nullptr);  // float, double
template <class T>
void multiply(const ProductForm<T>&, const MatrixProduct<T>&, Pauses* = nullptr);

// c = op(a) * op(b), or c += that, for matrices that lie row by row.
template <class T>
void gemm(bool ta, bool tb, i64 m, i64 n, i64 k, const T* a, i64 lda, const T* b, i64 ldb, bool add, T* c, i64 ldc,
          Pauses* pauses = nullptr) {
  multiply<T>({.size = {m, n, k},
               .left = {.data = a, .step = lda, .summed = ta},
               .right = {.data = b, .step = ldb, .summed = !tb},
               .out = {.data = c, .step = ldc, .add = add}},
              pauses);
}

}  // namespace stretto
