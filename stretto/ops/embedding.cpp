#include "stretto/ops/embedding.h"

#include "stretto/ops/cast.h"
#include "stretto/ops/embedding_grad.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor embedding(Tensor table, Tensor ids, Dim vocab) { return embedding_of_part(table, ids, vocab, 0, vocab); }

Tensor embedding_of_part(Tensor table, Tensor ids, const Dim& part, i64 first, const Dim& whole) {
  Builder& b = builder_of("embedding", {table, ids});
  const DimId vocab = rules::dim_of("embedding", table, part);
  return b.emit(embedding_op, {table, ids}, EmbeddingAttrs{vocab, b.intern(whole), first});
}

constinit const Op embedding_op{
    .name = "embedding",
    .infer =
        [](const OpCall& c) {
          if (c.in(1).dtype != i32)
            throw Error("embedding", "ids {} are {}", c.describe(1), name_of(c.in(1).dtype))
                .hint("the operands are table, ids; ids are i32: t.ids(name, dims)");
          rules::float_unary(c);
          DimSet dims = c.in(1).dims;
          for (DimId d : without(c.in(0).dims, {c.attrs<EmbeddingAttrs>().vocab})) dims.push_back(d);
          return std::vector<Type>{{c.in(0).dtype, dims}};
        },
    .vjp =
        [](const Vjp& v) {
          const EmbeddingAttrs a = v.attrs<EmbeddingAttrs>();
          const Tensor d = embedding_grad(v.grad[0], v.in[1], a.vocab, v.in[0].type().dims, a.first);
          return std::vector{cast(d, v.in[0].dtype()), Tensor{}};
        },
    .spread =
        [](const OpCall& c) {
          return Spread{.reduce = {{c.attrs<EmbeddingAttrs>().vocab, Reduce::sum}}, .linear = {0}};
        },
    .cost =
        [](const OpCall& c) {
          const double moved = double(c.graph.bytes(c.out()));
          return Cost{.read = moved + double(c.graph.bytes(c.in(1))), .written = moved};
        },
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4}, v{"v", 5}, m{"m", 6}, h{"h", 2}, one{"one", 1};
          e.add(embedding(e.real({v, m}), e.ids({a, b}, 5), v));
          e.add(embedding(e.real({m, v}), e.ids({a}, 5), v));
          e.add(embedding(e.real({h, v, m}), e.ids({b}, 5), v));
          e.add(embedding(e.real({v}), e.ids({a}, 5), v));
          e.add(embedding(e.real({v, m}), e.ids({}, 5), v));
          e.add(embedding(e.real({one, m}), e.ids({a}, 1), one));
          const Dim p = Dim{"p", 6}.padded(4);
          e.add(embedding(e.real({p, m}), e.ids({a}, 6), p));
          e.add(embedding_of_part(e.real({v, m}), e.ids({a, b}, 12), v, 4, Dim{"all", 12}));
        },
    .ids =
        [](const OpCall& c) {
          return IdOperand{1, c.graph.dim(c.attrs<EmbeddingAttrs>().whole).valid()};
        },
    .out_of_range =
        [](const OpCall& c, i64 id, i64 rows) {
          return Error("embedding", "id {} is outside of dim '{}', which has {} rows", id,
                       c.graph.dim(c.attrs<EmbeddingAttrs>().whole).name, rows)
              .hint("compare the vocabulary of the tokenizer with the model's");
        },
};

}  // namespace stretto
