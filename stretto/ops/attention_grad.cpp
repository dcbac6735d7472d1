#include "stretto/ops/attention_grad.h"

#include "stretto/ops/attention_blocks.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/rules.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"

namespace stretto {

Tensor attention_grad(Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor g, const AttentionAttrs& a) {
  return builder_of("attention_grad", {q})
      .emit(attention_grad_op, {q, k, v, o, lse, g}, AttentionGradAttrs{a.query, a.key, a.head, a.causal, a.scale});
}

constinit const Op attention_grad_op{
    .name = "attention_grad",
    .infer =
        [](const OpCall& c) {
          return std::vector<Type>{c.in(0), c.in(1), c.in(2)};
        },
    .spread =
        [](const OpCall& c) {
          const AttentionGradAttrs& a = c.attrs<AttentionGradAttrs>();
          Spread s{.serial = {a.key, a.head}, .linear = {5}};
          for (DimId d : without(c.in(0).dims, c.in(1).dims)) s.reduce.push_back({d, Reduce::sum});
          return s;
        },
    .cost =
        [](const OpCall& c) {
          const AttentionGradAttrs& a = c.attrs<AttentionGradAttrs>();
          Cost cost = c.streaming(0);
          cost.flops = double(c.elements(c.in(0))) * double(c.graph.size(a.key)) * (a.causal ? 5 : 10);
          return cost;
        },
    .examples =
        [](Examples& e) {
          const Dim s{"s", 5}, t{"t", 5}, kv{"kv", 2}, group{"group", 3}, d{"d", 4};
          const AttentionAttrs a{e.builder.intern(s), e.builder.intern(t), e.builder.intern(d), true, 0.5};
          const Dims q{s, kv, group, d}, k{t, kv, d};
          const Tensor dq =
              attention_grad(e.real(q), e.real(k), e.real(k), e.real(q), e.real({s, kv, group}, 2, 3), e.real(q), a);
          e.add({dq, e.builder.result(dq, 1), e.builder.result(dq, 2)});
        },
    .decompose =
        [](const OpCall& c, std::span<const Tensor> in) {
          const AttentionGradAttrs& a = c.attrs<AttentionGradAttrs>();
          const Tensor &q = in[0], &k = in[1], &v = in[2], &o = in[3], &lse = in[4], &g = in[5];
          const DimSet shared = without(c.in(1).dims, {a.key, a.head}), queries = without(c.in(0).dims, c.in(1).dims);
          const Tensor p = exp(attention_scores(q, k, {a.query, a.key, a.head, a.causal, a.scale}) - lse);
          const Tensor dp = contract_into_order(g, v, {a.head}, shared, p.type().dims);
          const Tensor ds = p * (dp - sum_over(g * o, {a.head})) * a.scale;
          return std::vector{contract_into_order(ds, k, {a.key}, shared, c.in(0).dims),
                             contract_into_order(ds, q, queries, shared, c.in(1).dims),
                             contract_into_order(p, g, queries, shared, c.in(2).dims)};
        },
    .scratch =
        [](const OpCall& c) {
          const AttentionGradAttrs& a = c.attrs<AttentionGradAttrs>();
          const AttentionBlocks b(c.in(0).dtype, c.graph.size(a.query), c.graph.size(a.key), c.graph.size(a.head));
          return std::size_t(b.backward()) * size_of(c.in(0).dtype);
        },
    .no_gradient = true,
};

}  // namespace stretto
