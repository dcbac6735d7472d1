// embedding(table, ids, vocab): for every id its row of the table.
//
//   embedding(t.param("wte", {vocab, model}), t.ids("ids", {batch, seq}), vocab)     // {batch seq model}
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct EmbeddingAttrs {
  DimId vocab, whole;  // rows of the table, and of all parts of it together
  i64 first = 0;       // id of this part's first row
  static constexpr void fields(auto& s, auto f) {
    f("vocab", s.vocab);
    f("whole", s.whole);
    f("first", s.first);
  }
};
// Dims of the result: those of ids, then the table's others. An id outside of the vocabulary is an Error when it runs.
Tensor embedding(Tensor table, Tensor ids, Dim vocab);
// Of a table that comes in parts, this one with rows from `first` on: zeros for ids of other parts.
Tensor embedding_of_part(Tensor table, Tensor ids, const Dim& part, i64 first, const Dim& whole);

}  // namespace stretto
