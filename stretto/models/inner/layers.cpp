#include "stretto/models/inner/layers.h"

#include <algorithm>
#include <cmath>

#include "stretto/models/lora.h"
#include "stretto/ops/add.h"
#include "stretto/ops/attention.h"
#include "stretto/ops/cached_attention.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/gelu.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/relu.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/silu.h"
#include "stretto/ops/slice.h"
#include "stretto/ops/softmax.h"

namespace stretto {
namespace {

Dims both(Dims first, const Dims& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

Tensor linear(Trace& t, const ModelConfig& c, Tensor x, const std::string& name, const Dims& in, const Dims& out,
              const Init& init) {
  const Tensor y = contract(x, t.param(name, both(in, out), {.init = init}), in);
  if (!c.lora || !has_adapter(*c.lora, t.scoped(name))) return y;
  double inputs = 1;
  for (const Dim& d : in) inputs *= d.valid();
  // As PEFT begins: Kaiming's uniform interval with a = sqrt(5), and zeros, so that at first nothing is added.
  const Dim rank{"lora", c.lora->rank};
  const Tensor a = t.param(name + std::string(lora_a), both(in, rank), {.init = uniform(1 / std::sqrt(inputs))});
  const Tensor b = t.param(name + std::string(lora_b), both(rank, out), {.init = zeros});
  const Tensor low = contract(t.dropout(x, c.lora->dropout, name + ".lora_dropout"), a, in);
  return y + contract(low, b, rank) * c.lora->scale();
}

Tensor activate(Tensor x, Activation how) {
  switch (how) {
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_erf:
      return gelu_erf(x);
    case Activation::relu:
      return relu(x);
    case Activation::silu:
      return silu(x);
  }
  STRETTO_ASSERT(false, "an activation without a function");
}

namespace {

// The caches keep a head's rows together: they are read far more often than written.
Tensor attend_cached(Trace& t, Tensor q, Tensor k, Tensor v, const Attending& a) {
  const Dim cache = t.cache();
  const auto kept = [&](Tensor x, const Dim& head) {
    Dims dims;
    for (const Dim& d : x.dims())
      if (d.name != a.seq.name && d.name != head.name) dims.push_back(d);
    dims.push_back(cache);
    dims.push_back(head);
    return dims;
  };
  return cached_attention(q, k, v, t.kept("k", kept(k, a.head)), t.kept("v", kept(v, a.value.value_or(a.head))),
                          t.positions(a.seq),
                          {.query = a.seq,
                           .cache = cache,
                           .head = a.head,
                           .value = a.value,
                           .scale = a.scale,
                           .window = a.window,
                           .chunk = a.chunk,
                           .softcap = a.softcap},
                          a.sinks);
}

// Attention whose weights are made one by one: some of them are dropped.
Tensor attend_with_weights(Trace& t, Tensor q, Tensor k, Tensor v, const AttentionOptions& o, const Attending& a,
                           Tensor since) {
  if (a.sinks)
    throw Error("model.attention_dropout", "weights are dropped at {}, and beside sinks that is not supported",
                a.dropout)
        .hint("use attention_dropout = 0");
  Builder& b = t.builder;
  AttentionAttrs attrs{.query = b.intern(o.query), .key = b.intern(o.key), .head = b.intern(o.head)};
  attrs.scale = o.scale.value_or(1 / std::sqrt(o.head.size));
  attrs.window = o.window, attrs.chunk = o.chunk, attrs.softcap = o.softcap;
  Dims shared;  // batch and key/value heads
  for (const Dim& d : v.dims())
    if (d.name != o.key.name && d.name != o.value.value_or(o.head).name) shared.push_back(d);
  const Tensor weights = softmax(attention_scores(q, k, attrs, since), o.key);
  return contract(t.dropout(weights, a.dropout, "attention_dropout"), v, o.key, along(shared));
}

}  // namespace

Tensor only_last(Trace& t, Tensor x, const Dim& seq) {
  return t.decoding() ? slice(x, seq, Dim{"last", 1}, seq.size - 1) : x;
}

Tensor document_starts(Trace& t, const ModelConfig& c, Tensor ids) {
  if (!c.documents || t.decoding()) return {};
  const Dim seq = ids.dim("seq"), seq_d = seq.whole("seq_d");
  return rename(starts(rename(t.ids("segments", ids.dims()), seq, seq_d), seq_d), seq_d, seq);
}

Tensor attend(Trace& t, Tensor q, Tensor k, Tensor v, const Attending& a) {
  if (t.decoding()) return attend_cached(t, q, k, v, a);
  // Names of attention's own: a layout may split heads here where it splits positions elsewhere.
  const Dim &seq = a.seq, seq_q = seq.like("seq_q"), seq_k = seq.whole("seq_k");
  std::vector<Rename> queries{{seq, seq_q}}, keys{{seq, seq_k}}, back{{seq_q, seq}}, heads;
  for (const Dim& d : q.dims()) {
    if (d.name == seq.name || d.name == a.head.name || d.name == t.batch_name) continue;
    const Dim own = d.like(d.name + "_q");
    heads.push_back({d, own});
    queries.push_back({d, own});
    back.push_back({own, d});
    const Dims has = k.dims();
    if (std::find(has.begin(), has.end(), d) != has.end()) keys.push_back({d, own});
  }
  q = rename(q, queries);
  k = rename(k, keys);
  v = rename(v, keys);
  const AttentionOptions o{.query = seq_q,
                           .key = seq_k,
                           .head = a.head,
                           .value = a.value,
                           .scale = a.scale,
                           .window = a.window,
                           .chunk = a.chunk,
                           .softcap = a.softcap};
  const Tensor since = a.since ? rename(a.since, seq, seq_q) : Tensor();
  if (a.dropout > 0 && t.training()) return rename(attend_with_weights(t, q, k, v, o, a, since), back);
  return rename(attention(q, k, v, o, {.since = since, .sinks = a.sinks ? rename(a.sinks, heads) : Tensor()}), back);
}

}  // namespace stretto
