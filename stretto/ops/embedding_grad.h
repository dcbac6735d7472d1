// Gradient of embedding: adds every row of g to its id's row of a table of zeros, of bf16 in f32. Made by
// differentiation.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct EmbeddingGradAttrs {
  DimId vocab;
  DimSet table;  // the result's dims
  static constexpr void fields(auto& s, auto f) {
    f("vocab", s.vocab);
    f("table", s.table);
  }
};
Tensor embedding_grad(Tensor g, Tensor ids, DimId vocab, const DimSet& table);

}  // namespace stretto
