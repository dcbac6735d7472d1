#include "stretto/ops/attention_grad.h"

#include "stretto/ops/add.h"
#include "stretto/ops/attention_blocks.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/extremum.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/square.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"

namespace stretto {

Tensor attention_grad(Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor g, AttentionAttrs a, Tensor since,
                      Tensor until) {
  a.sinks = false;
  std::vector<Tensor> operands{q, k, v, o, lse, g};
  if (a.since) operands.push_back(since);
  if (a.until) operands.push_back(until);
  return builder_of("attention_grad", {q}).emit(attention_grad_op, operands, a);
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
          if (a.value != a.head) s.serial.push_back(a.value);
          for (DimId d : without(c.in(0).dims, c.in(1).dims)) s.reduce.push_back({d, Reduce::sum});
          return s;
        },
    .cost =
        [](const OpCall& c) {
          const AttentionGradAttrs& a = c.attrs<AttentionGradAttrs>();
          Cost cost = c.streaming(0);
          cost.flops = a.keys_seen(c.graph) * double(6 * c.elements(c.in(0)) + 4 * c.elements(c.in(5)));
          AttentionShape shape = a.shape(c.graph, c.in(0));
          shape.backward = true;
          cost.shape = shape;
          return cost;
        },
    .examples =
        [](Examples& e) {
          const Dim s{"s", 5}, t{"t", 5}, kv{"kv", 2}, group{"group", 3}, d{"d", 4};
          const auto id = [&](const Dim& dim) { return e.builder.intern(dim); };
          AttentionAttrs a{.query = id(s), .key = id(t), .head = id(d), .value = id(d), .scale = 0.5};
          const Dims q{s, kv, group, d}, k{t, kv, d};
          const auto one = [&](const Dims& o, const Dims& v, Tensor since, Tensor until = {}) {
            const Tensor dq = attention_grad(e.real(q), e.real(k), e.real(v), e.real(o),
                                             e.real_wide({s, kv, group}, 2, 3), e.real(o), a, since, until);
            e.add({dq, e.builder.result(dq, 1), e.builder.result(dq, 2)});
          };
          one(q, k, {});
          a.window = 2, a.softcap = 0.8;
          one(q, k, {});
          const Dim wide{"wide", 6};
          a.value = id(wide), a.since = true;
          one({s, kv, group, wide}, {t, kv, wide}, starts(e.ids({s}, 2), s));
          a = {.query = id(s), .key = id(t), .head = id(d), .value = id(d), .scale = 0.5, .chunk = 2};
          one(q, k, {});
          a.chunk = 0, a.causal = false, a.until = true;
          one(q, k, {}, maximum(iota(e.builder, s), e.ids({s}, 5)) + 1.0);
        },
    .decompose =
        [](const OpCall& c, std::span<const Tensor> in) {
          const AttentionGradAttrs& a = c.attrs<AttentionGradAttrs>();
          const Tensor &q = in[0], &k = in[1], &v = in[2], &o = in[3], &lse = in[4], &g = in[5];
          const DimSet shared = without(c.in(1).dims, {a.key, a.head}), queries = without(c.in(0).dims, c.in(1).dims);
          const auto bound = [&](std::optional<int> at) { return at ? in[std::size_t(*at)] : Tensor{}; };
          const Tensor scores = attention_scores(q, k, a, bound(a.since_at(6)), bound(a.until_at(6)));
          const Tensor p = exp(scores - lse);
          const Tensor dp = contract_into_order(g, v, {a.value}, shared, p.type().dims);
          Tensor ds = p * (dp - sum_over(g * o, {a.value})) * a.scale;
          if (a.softcap > 0) ds = ds * (1.0 - square(maximum(scores * (1 / a.softcap), -1)));  // not of what is hidden
          return std::vector{contract_into_order(ds, k, {a.key}, shared, c.in(0).dims),
                             contract_into_order(ds, q, queries, shared, c.in(1).dims),
                             contract_into_order(p, g, queries, shared, c.in(2).dims)};
        },
    .scratch =
        [](const OpCall& c) {
          const AttentionGradAttrs& a = c.attrs<AttentionGradAttrs>();
          const DType t = wide(c.in(0).dtype);
          const AttentionBlocks b(t, c.graph.size(a.query), c.graph.size(a.key), c.graph.size(a.head),
                                  c.graph.size(a.value));
          return std::size_t(b.backward()) * size_of(t);
        },
    .no_gradient = true,
};

}  // namespace stretto
