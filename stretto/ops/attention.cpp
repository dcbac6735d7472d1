#include "stretto/ops/attention.h"

#include <algorithm>
#include <cmath>

#include "stretto/ops/add.h"
#include "stretto/ops/attention_blocks.h"
#include "stretto/ops/attention_grad.h"
#include "stretto/ops/broadcast.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/div.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/log.h"
#include "stretto/ops/max.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/rules.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"
#include "stretto/ops/where.h"

namespace stretto {
namespace {

void check(Tensor q, Tensor k, Tensor v, DimId query, DimId key, DimId head) {
  const Graph& g = q.builder->graph;
  const Type tq = q.type(), tk = k.type(), tv = v.type();
  const auto name = [&](DimId d) { return g.dim(d).name; };
  for (const Tensor& t : {k, v}) {
    if (t.dtype() != tq.dtype)
      throw Error("attention", "{} is {} and {} is {}", q.str(), name_of(tq.dtype), t.str(), name_of(t.dtype()))
          .hint("cast one of them: cast(x, {})", name_of(tq.dtype));
    if (contains(t.type().dims, query))
      throw Error("attention", "the query dim '{}' is in {}, which has the keys' dims", name(query), t.str())
          .hint("rename it there: rename(k, seq, seq_k), and pass seq_k as .key");
  }
  if (!is_float(tq.dtype)) throw Error("attention", "{} holds integers", q.str()).hint("cast it first: cast(x, f32)");
  if (contains(tq.dims, key))
    throw Error("attention", "the key dim '{}' is in the queries {}", name(key), q.str())
        .hint("give the keys a dim of their own: rename(k, seq, seq_k)");
  if (tk.dims.size() != tv.dims.size() || !std::is_permutation(tk.dims.begin(), tk.dims.end(), tv.dims.begin()))
    throw Error("attention", "keys {} and values {} have different dims", k.str(), v.str())
        .hint("they differ only in what they hold");
  for (DimId d : tk.dims)
    if (d != key && !contains(tq.dims, d))
      throw Error("attention", "keys {} have dim '{}' that the queries {} lack", k.str(), name(d), q.str())
          .hint("rename or sum '{}'; only queries may have further dims (groups of heads)", name(d));
  STRETTO_ASSERT(query != head && contains(tk.dims, head));
}

}  // namespace

Tensor attention(Tensor q, Tensor k, Tensor v, const AttentionOptions& o) {
  Builder& b = builder_of("attention", {q, k, v});
  for (const auto& [dim, what] : {std::pair{&o.query, "query"}, {&o.key, "key"}, {&o.head, "head"}})
    if (dim->name.empty())
      throw Error("attention", "the {} dim is not named", what)
          .hint("attention(q, k, v, {{.query = seq, .key = seq_k, .head = head}})");
  const DimId query = rules::dim_of("attention", q, o.query), key = rules::dim_of("attention", k, o.key),
              head = rules::dim_of("attention", q, o.head);
  rules::dim_of("attention", k, o.head);
  if (query == head)
    throw Error("attention", "dim '{}' is both query and head", o.head.name).hint("name two different dims");
  check(q, k, v, query, key, head);
  const double scale = o.scale.value_or(1 / std::sqrt(o.head.valid()));
  return b.emit(attention_op, {q, k, v}, AttentionAttrs{query, key, head, o.causal, scale});
}

Tensor attention_scores(Tensor q, Tensor k, const AttentionAttrs& a) {
  Builder& b = *q.builder;
  const DimSet shared = without(k.type().dims, {a.key, a.head});
  DimSet out = without(q.type().dims, {a.head});
  out.push_back(a.key);
  const Tensor scores = contract_into_order(q, k, {a.head}, shared, out) * a.scale;
  if (!a.causal) return scores;
  const Tensor future =
      greater(broadcast_to(iota(b, b.graph.dim(a.key)), {a.query, a.key}), iota(b, b.graph.dim(a.query)));
  return where(future, constant(b, -1e30, q.dtype()), scores);
}

constinit const Op attention_op{
    .name = "attention",
    .infer =
        [](const OpCall& c) {
          return std::vector<Type>{c.in(0), {c.in(0).dtype, without(c.in(0).dims, {c.attrs<AttentionAttrs>().head})}};
        },
    .vjp =
        [](const Vjp& v) {
          const Tensor dq =
              attention_grad(v.in[0], v.in[1], v.in[2], v.out[0], v.out[1], v.grad[0], v.attrs<AttentionAttrs>());
          return std::vector{dq, v.builder.result(dq, 1), v.builder.result(dq, 2)};
        },
    .spread =
        [](const OpCall& c) {
          const AttentionAttrs& a = c.attrs<AttentionAttrs>();
          return Spread{.serial = {a.key, a.head}};
        },
    .cost =
        [](const OpCall& c) {
          const AttentionAttrs& a = c.attrs<AttentionAttrs>();
          Cost cost = c.streaming(0);
          cost.flops = double(c.elements(c.in(0))) * double(c.graph.size(a.key)) * (a.causal ? 2 : 4);
          return cost;
        },
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 5}, t{"t", 5}, kv{"kv", 2}, group{"group", 3}, d{"d", 4}, one{"one", 1};
          const AttentionOptions o{.query = s, .key = t, .head = d};
          AttentionOptions full = o;
          full.causal = false;
          full.scale = 0.7;
          e.add(attention(e.real({b, s, kv, d}), e.real({b, t, kv, d}), e.real({b, t, kv, d}), o));
          e.add(attention(e.real({b, s, kv, group, d}), e.real({b, t, kv, d}), e.real({b, t, kv, d}), o));
          e.add(attention(e.real({kv, d, s}), e.real({t, d, kv}), e.real({kv, t, d}), full));
          e.add(attention(e.real({s, d}), e.real({t, d}), e.real({t, d}), o));
          const Dim far{"far", 9};
          e.add(attention(e.real({s, d}), e.real({far, d}), e.real({far, d}), {.query = s, .key = far, .head = d}));
          e.add(attention(e.real({one, d}), e.real({t, d}), e.real({t, d}),
                          {.query = one, .key = t, .head = d, .causal = false}));
          const Tensor x = e.real({t, d});
          e.add(attention(e.real({s, d}), x, x, o));
        },
    .decompose =
        [](const OpCall& c, std::span<const Tensor> in) {
          const AttentionAttrs& a = c.attrs<AttentionAttrs>();
          const DimSet shared = without(c.in(1).dims, {a.key, a.head});
          const Tensor s = attention_scores(in[0], in[1], a), top = max_over(s, {a.key}), e = exp(s - top);
          const Tensor total = sum_over(e, {a.key});
          return std::vector{contract_into_order(e / total, in[2], {a.key}, shared, c.out(0).dims), log(total) + top};
        },
    .scratch =
        [](const OpCall& c) {
          const AttentionAttrs& a = c.attrs<AttentionAttrs>();
          const AttentionBlocks b(c.in(0).dtype, c.graph.size(a.query), c.graph.size(a.key), c.graph.size(a.head));
          return std::size_t(b.forward()) * size_of(c.in(0).dtype);
        },
    .costly = Costly::yes,
    .keeps_operands = true,
};

}  // namespace stretto
