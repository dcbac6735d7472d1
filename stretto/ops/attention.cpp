#include "stretto/ops/attention.h"

#include <algorithm>
#include <cmath>

#include "stretto/ops/add.h"
#include "stretto/ops/attention_blocks.h"
#include "stretto/ops/attention_grad.h"
#include "stretto/ops/broadcast.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/div.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/extremum.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/log.h"
#include "stretto/ops/max.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/neg.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"
#include "stretto/ops/tanh.h"
#include "stretto/ops/where.h"

namespace stretto {
namespace {

void check_keys(Tensor q, Tensor t, const AttentionAttrs& a) {
  const Graph& g = q.builder->graph;
  const auto name = [&](DimId d) { return g.dim(d).name; };
  if (t.dtype() != q.dtype())
    throw Error("attention", "{} is {} and {} is {}", q.str(), name_of(q.dtype()), t.str(), name_of(t.dtype()))
        .hint("cast one of them: cast(x, {})", name_of(q.dtype()));
  if (contains(t.type().dims, a.query))
    throw Error("attention", "the query dim '{}' is in {}, which has the keys' dims", name(a.query), t.str())
        .hint("rename it there: rename(k, seq, seq_k), and pass seq_k as .key");
}

void check(Tensor q, Tensor k, Tensor v, const AttentionAttrs& a) {
  const Graph& g = q.builder->graph;
  const Type tq = q.type(), tk = k.type();
  const auto name = [&](DimId d) { return g.dim(d).name; };
  for (const Tensor& t : {k, v}) check_keys(q, t, a);
  if (!is_float(tq.dtype)) throw Error("attention", "{} holds integers", q.str()).hint("cast it first: cast(x, f32)");
  if (contains(tq.dims, a.key))
    throw Error("attention", "the key dim '{}' is in the queries {}", name(a.key), q.str())
        .hint("give the keys a dim of their own: rename(k, seq, seq_k)");
  const DimSet of_k = without(tk.dims, {a.head}), of_v = without(v.type().dims, {a.value});
  if (of_k.size() != of_v.size() || !std::is_permutation(of_k.begin(), of_k.end(), of_v.begin()) ||
      (a.value != a.head && (contains(tq.dims, a.value) || contains(v.type().dims, a.head))))
    throw Error("attention", "keys {} and values {} have different dims", k.str(), v.str())
        .hint("they differ only in what they hold, or in a head dim that is passed as .value");
  for (DimId d : tk.dims)
    if (d != a.key && !contains(tq.dims, d))
      throw Error("attention", "keys {} have dim '{}' that the queries {} lack", k.str(), name(d), q.str())
          .hint("rename or sum '{}'; only queries may have further dims (groups of heads)", name(d));
  STRETTO_ASSERT(a.query != a.head && contains(tk.dims, a.head));
}

void check_extras(Tensor q, const AttentionAttrs& a, const AttentionOptions& o, const AttentionExtras& more) {
  const DimSet rows = without(q.type().dims, {a.head});
  const auto within = [&](const Tensor& t) { return without(t.type().dims, rows).empty(); };
  if (o.window < 0 || o.chunk < 0 || !(o.softcap >= 0))
    throw Error("attention", "window {}, chunk {} and softcap {}", o.window, o.chunk, o.softcap)
        .hint("they are 0 or more");
  if ((o.window > 0 || o.chunk > 0) && !o.causal && !more.until)
    throw Error("attention", "window {} and chunk {} of attention that is not causal", o.window, o.chunk)
        .hint("they are of what lies before a query: leave .causal = true, or say .until");
  if (more.until && o.causal)
    throw Error("attention", "last keys {} beside causal attention", more.until.str())
        .hint("use .causal = false: .until says how far a query sees");
  for (const auto& [bound, what] : {std::pair{&more.since, "first"}, {&more.until, "last"}})
    if (*bound && (bound->dtype() != i32 || !contains(bound->type().dims, a.query) || !within(*bound)))
      throw Error("attention", "{} keys {} must be i32 along '{}' and other dims of {}", what, bound->str(),
                  o.query.name, q.str())
          .hint("use starts(segments, {}), or numbers made of iota", o.query.name);
  if (more.sinks &&
      (more.sinks.dtype() != q.dtype() || contains(more.sinks.type().dims, a.query) || !within(more.sinks)))
    throw Error("attention", "sinks {} must be {} along heads of {}", more.sinks.str(), name_of(q.dtype()), q.str())
        .hint("one number per head");
}

// Of a further score s without a value: the output moves away from where it was, as much as it takes.
Tensor sinks_gradient(const Vjp& v, const AttentionAttrs& a) {
  const DType type = v.out[1].dtype();  // of the logarithms: f32 beside bf16
  const Tensor sinks = cast(v.in.back(), type), taken = exp(sinks - v.out[1]);
  const Tensor all = taken * sum_over(cast(v.grad[0], type) * cast(v.out[0], type), {a.value});
  return cast(-sum_over(all, without(all.type().dims, sinks.type().dims)), v.in.back().dtype());
}

}  // namespace

double AttentionAttrs::keys_seen(const Graph& g) const {
  const double keys = g.size(key), queries = g.size(query);
  if (!causal) return keys;
  const double seen = std::max(1.0, keys - queries / 2), near = window > 0 ? std::min<double>(seen, window) : seen;
  return chunk > 0 ? std::min(near, (double(chunk) + 1) / 2) : near;
}

AttentionShape AttentionAttrs::shape(const Graph& g, const Type& q) const {
  AttentionShape s{.queries = double(g.size(query)),
                   .keys = double(g.size(key)),
                   .head = double(g.size(head)),
                   .value = double(g.size(value))};
  s.heads = double(g.elements(q)) / (s.queries * s.head);
  s.seen = keys_seen(g) / s.keys;
  return s;
}

Tensor attention(Tensor q, Tensor k, Tensor v, const AttentionOptions& o, const AttentionExtras& more) {
  Builder& b = builder_of("attention", {q, k, v});
  for (const auto& [dim, what] : {std::pair{&o.query, "query"}, {&o.key, "key"}, {&o.head, "head"}})
    if (dim->name.empty())
      throw Error("attention", "the {} dim is not named", what)
          .hint("attention(q, k, v, {{.query = seq, .key = seq_k, .head = head}})");
  AttentionAttrs a{.query = rules::dim_of("attention", q, o.query),
                   .key = rules::dim_of("attention", k, o.key),
                   .head = rules::dim_of("attention", q, o.head)};
  rules::dim_of("attention", k, o.head);
  a.value = o.value ? rules::dim_of("attention", v, *o.value) : a.head;
  if (a.query == a.head)
    throw Error("attention", "dim '{}' is both query and head", o.head.name).hint("name two different dims");
  a.causal = o.causal, a.window = o.window, a.chunk = o.chunk, a.softcap = o.softcap;
  a.scale = o.scale.value_or(1 / std::sqrt(o.head.valid()));
  a.since = bool(more.since), a.until = bool(more.until), a.sinks = bool(more.sinks);
  check(q, k, v, a);
  check_extras(q, a, o, more);
  std::vector<Tensor> operands{q, k, v};
  if (more.since) operands.push_back(more.since);
  if (more.until) operands.push_back(more.until);
  if (more.sinks) operands.push_back(more.sinks);
  return b.emit(attention_op, operands, a);
}

namespace {

Tensor operand(std::span<const Tensor> in, std::optional<int> at) { return at ? in[std::size_t(*at)] : Tensor{}; }

// Where the chunk of a query begins: chunks count from the first key that it might see.
Tensor chunk_start(Builder& b, const AttentionAttrs& a, Tensor since) {
  const Tensor own = iota(b, b.graph.dim(a.query));
  const Tensor before =
      cast(since ? own - since : own, f64);  // halves, so that no rounding takes a key to its neighbour
  const Tensor start = cast(cast((before + 0.5) * (1 / double(a.chunk)), i32), f64) * double(a.chunk);
  return since ? cast(start, i32) + since : cast(start, i32);
}

}  // namespace

Tensor attention_scores(Tensor q, Tensor k, const AttentionAttrs& a, Tensor since, Tensor until) {
  Builder& b = *q.builder;
  const DimSet shared = without(k.type().dims, {a.key, a.head});
  DimSet out = without(q.type().dims, {a.head});
  out.push_back(a.key);
  Tensor scores = contract_into_order(q, k, {a.head}, shared, out) * a.scale;
  if (a.softcap > 0) scores = tanh(scores * (1 / a.softcap)) * a.softcap;
  const auto hide = [&](Tensor hidden) { scores = where(hidden, constant(b, -1e30, q.dtype()), scores); };
  const auto keys_beside = [&](Tensor bound) {
    DimSet dims = bound.type().dims;
    dims.push_back(a.key);
    return broadcast_to(iota(b, b.graph.dim(a.key)), std::move(dims));
  };
  const Tensor own = iota(b, b.graph.dim(a.query));
  if (a.causal) hide(greater(keys_beside(own), own));
  if (a.window > 0) hide(less_equal(keys_beside(own) + double(a.window), own));
  if (a.chunk > 0) since = chunk_start(b, a, since);
  if (since) hide(less(keys_beside(since), since));
  if (until) hide(greater_equal(keys_beside(until), until));
  return scores;
}

constinit const Op attention_op{
    .name = "attention",
    .infer =
        [](const OpCall& c) {
          const AttentionAttrs& a = c.attrs<AttentionAttrs>();
          DimSet out = c.in(0).dims;
          std::replace(out.begin(), out.end(), a.head, a.value);
          return std::vector<Type>{{c.in(0).dtype, out}, {wide(c.in(0).dtype), without(c.in(0).dims, {a.head})}};
        },
    .vjp =
        [](const Vjp& v) {
          const AttentionAttrs a = v.attrs<AttentionAttrs>();
          const Tensor dq = attention_grad(v.in[0], v.in[1], v.in[2], v.out[0], v.out[1], v.grad[0], a,
                                           operand(v.in, a.since_at(3)), operand(v.in, a.until_at(3)));
          std::vector all{dq, v.builder.result(dq, 1), v.builder.result(dq, 2)};
          all.resize(v.in.size());
          if (a.sinks && v.wanted[v.in.size() - 1]) all.back() = sinks_gradient(v, a);
          return all;
        },
    .spread =
        [](const OpCall& c) {
          const AttentionAttrs& a = c.attrs<AttentionAttrs>();
          return Spread{.serial = a.value == a.head ? DimSet{a.key, a.head} : DimSet{a.key, a.head, a.value}};
        },
    .cost =
        [](const OpCall& c) {
          const AttentionAttrs& a = c.attrs<AttentionAttrs>();
          Cost cost = c.streaming(0);
          cost.flops = 2 * a.keys_seen(c.graph) * double(c.elements(c.in(0)) + c.elements(c.out()));
          cost.shape = a.shape(c.graph, c.in(0));
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
          AttentionOptions special = o;
          special.window = 3;
          e.add(attention(e.real({b, s, kv, d}), e.real({b, t, kv, d}), e.real({b, t, kv, d}), special));
          special.window = 0, special.softcap = 0.7;
          e.add(attention(e.real({s, kv, group, d}), e.real({t, kv, d}), e.real({t, kv, d}), special));
          const Dim wide{"wide", 6};
          special.value = wide;
          e.add(attention(e.real({b, s, kv, d}), e.real({b, t, kv, d}), e.real({b, t, kv, wide}), special,
                          {.since = starts(e.ids({b, s}, 2), s), .sinks = e.real({kv})}));
          e.add(attention(e.real({b, s, kv, group, d}), e.real({b, t, kv, d}), e.real({b, t, kv, d}), o,
                          {.since = starts(e.ids({b, s}, 2), s), .sinks = e.real({kv, group})}));
          AttentionOptions chunks = o, prefix = o;
          chunks.chunk = 2;
          e.add(attention(e.real({b, s, kv, d}), e.real({b, t, kv, d}), e.real({b, t, kv, d}), chunks));
          e.add(attention(e.real({b, s, d}), e.real({b, t, d}), e.real({b, t, d}), chunks,
                          {.since = starts(e.ids({b, s}, 2), s)}));
          prefix.causal = false;
          const Tensor until = maximum(broadcast(iota(e.builder, s), {b, s}), e.ids({b, s}, 5)) + 1.0;
          e.add(attention(e.real({b, s, kv, d}), e.real({b, t, kv, d}), e.real({b, t, kv, d}), prefix,
                          {.until = until, .sinks = e.real({kv})}));
          prefix.window = 3;
          e.add(attention(e.real({b, s, d}), e.real({b, t, d}), e.real({b, t, d}), prefix,
                          {.since = starts(e.ids({b, s}, 2), s), .until = until}));
        },
    .decompose =
        [](const OpCall& c, std::span<const Tensor> in) {
          const AttentionAttrs& a = c.attrs<AttentionAttrs>();
          const DimSet shared = without(c.in(1).dims, {a.key, a.head});
          const Tensor s = attention_scores(in[0], in[1], a, operand(in, a.since_at(3)), operand(in, a.until_at(3)));
          Tensor top = max_over(s, {a.key});
          if (a.sinks) top = maximum(top, in.back());
          const bool blind = a.since || a.until;  // some queries may see nothing
          if (blind) top = where(less(top, -1e29), constant(*top.builder, 0, top.dtype()), top);
          const Tensor e = exp(s - top);
          Tensor total = sum_over(e, {a.key});
          if (a.sinks) total = total + exp(in.back() - top);
          if (blind) total = total + cast(equal(total, 0.0), total.dtype());
          return std::vector{contract_into_order(e / total, in[2], {a.key}, shared, c.out(0).dims), log(total) + top};
        },
    .scratch =
        [](const OpCall& c) {
          const AttentionAttrs& a = c.attrs<AttentionAttrs>();
          const DType t = wide(c.in(0).dtype);
          const AttentionBlocks b(t, c.graph.size(a.query), c.graph.size(a.key), c.graph.size(a.head),
                                  c.graph.size(a.value));
          return std::size_t(b.forward()) * size_of(t);
        },
    .looks_back = [](const OpCall& c) -> std::optional<LooksBack> {
      const AttentionAttrs& a = c.attrs<AttentionAttrs>();
      if (!a.causal) return {};
      return LooksBack{.at = a.query, .over = a.key, .operands = {1, 2}};
    },
    .costly = Costly::yes,
    .keeps_operands = true,
};

}  // namespace stretto
