#include "stretto/ops/embedding_grad.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor embedding_grad(Tensor g, Tensor ids, DimId vocab, const DimSet& table, i64 first) {
  Builder& b = builder_of("embedding_grad", {g, ids});
  return b.emit(embedding_grad_op, {g, ids}, EmbeddingGradAttrs{vocab, table, first});
}

constinit const Op embedding_grad_op{
    .name = "embedding_grad",
    .infer =
        [](const OpCall& c) {
          return std::vector<Type>{{wide(c.in(0).dtype), c.attrs<EmbeddingGradAttrs>().table}};
        },
    .spread =
        [](const OpCall& c) {
          Spread s{.linear = {0}};
          for (DimId d : c.in(1).dims) s.reduce.push_back({d, Reduce::sum});
          return s;
        },
    .cost = [](const OpCall& c) { return c.streaming(1); },
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4}, v{"v", 5}, m{"m", 6};
          const DimId vocab = e.builder.intern(v), model = e.builder.intern(m);
          e.add(embedding_grad(e.real({a, b, m}), e.ids({a, b}, 5), vocab, {vocab, model}));
          e.add(embedding_grad(e.real({a, m}), e.ids({a}, 5), vocab, {model, vocab}));
          e.add(embedding_grad(e.real({a}), e.ids({a}, 5), vocab, {vocab}));
          e.add(embedding_grad(e.real({a, b, m}), e.ids({a, b}, 12), vocab, {vocab, model}, 4));
        },
    .accumulates = true,
    .no_gradient = true,
};

}  // namespace stretto
