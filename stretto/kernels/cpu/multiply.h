// Products of matrices, and of rows that lie anywhere. What is summed is cut into blocks of product_block, always at
// the same places. The sum of a block is one chain of fused multiplications and additions, from zero on and in
// ascending order; sums of blocks are added, in ascending order, to what is there (add) or to each other. So an element
// has the same bits in every product that it is part of: however rows and columns are cut, wherever they lie, on any
// processor.
//
//   multiply<float>({{m, n, k}, {.data = x, .step = k}, {.data = w, .step = n, .summed = true}, {y, nullptr, n}});
//   gemm(false, false, m, n, k, x, k, w, n, false, y, n);       // the same
//   multiply(part_of(product, 2, 5));                           // the third of five parts of it
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

// Of `count` parts that make a product together: a block of its rows and columns, in whole tiles, or nothing. Rows that
// are added to places stay together, since several may go to one.
struct ProductBlock {
  i64 row = 0, rows = 0, column = 0, columns = 0;
};
ProductBlock block_of_part(const ProductSize&, bool rows_stay, i64 index, i64 count);
template <class T>
MatrixProduct<T> block_of(const MatrixProduct<T>& p, const ProductBlock& b) {
  const auto lines = [](ProductLines<T> l, i64 first) {
    if (l.summed)
      l.data += first;
    else if (l.at)
      l.at += first;
    else
      l.data += first * l.step;
    return l;
  };
  MatrixProduct<T> part{{b.rows, b.columns, p.size.k}, lines(p.left, b.row), lines(p.right, b.column), p.out};
  part.out.data += b.column;
  if (part.out.at)
    part.out.at += b.row;
  else
    part.out.data += b.row * part.out.step;
  return part;
}
template <class T>
MatrixProduct<T> part_of(const MatrixProduct<T>& p, i64 index, i64 count) {
  return block_of(p, block_of_part(p.size, p.out.at && p.out.add, index, count));
}

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
