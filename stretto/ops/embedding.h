// embedding(table, ids, vocab): for every id its row of the table.
//
//   embedding(t.param("wte", {vocab, model}), t.ids("ids", {batch, seq}), vocab)     // {batch seq model}
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct EmbeddingAttrs {
  DimId vocab;
  static constexpr void fields(auto& s, auto f) { f("vocab", s.vocab); }
};
// Dims of the result: those of ids, then the table's others. An id outside of the vocabulary is an Error when it runs.
Tensor embedding(Tensor table, Tensor ids, Dim vocab);

}  // namespace stretto
