// Gradient of embedding: adds every row of g to its id's row of a table of zeros, of bf16 in f32. Made by
// differentiation.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct EmbeddingGradAttrs {
  DimId vocab;
  DimSet table;   // the result's dims
  i64 first = 0;  // id of its first row
  static constexpr void fields(auto& s, auto f) {
    f("vocab", s.vocab);
    f("table", s.table);
    f("first", s.first);
  }
};
Tensor embedding_grad(Tensor g, Tensor ids, DimId vocab, const DimSet& table, i64 first = 0);

}  // namespace stretto
