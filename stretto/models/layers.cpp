#include "stretto/models/layers.h"

#include <algorithm>
#include <cmath>

#include "stretto/ops/attention.h"
#include "stretto/ops/broadcast.h"
#include "stretto/ops/cached_attention.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/gelu.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/relu.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/silu.h"
#include "stretto/ops/slice.h"
#include "stretto/ops/softmax.h"
#include "stretto/ops/where.h"

namespace stretto {

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
Tensor attend_cached(Trace& t, Tensor q, Tensor k, Tensor v, const Dim& seq, const Dim& head) {
  const Dim cache = t.cache();
  Dims dims;
  for (const Dim& d : k.dims())
    if (d.name != seq.name && d.name != head.name) dims.push_back(d);
  dims.push_back(cache);
  dims.push_back(head);
  return cached_attention(q, k, v, t.state("k", dims), t.state("v", dims), t.positions(seq),
                          {.query = seq, .cache = cache, .head = head});
}

}  // namespace

Tensor only_last(Trace& t, Tensor x, const Dim& seq) {
  return t.decoding() ? slice(x, seq, Dim{"last", 1}, seq.size - 1) : x;
}

Tensor segments_of(Trace& t, const ModelConfig& c, Tensor ids) {
  return c.documents && !t.decoding() ? t.ids("segments", ids.dims()) : Tensor();
}

Tensor attend(Trace& t, Tensor q, Tensor k, Tensor v, const Dim& seq, const Dim& head, double dropout,
              Tensor segments) {
  if (t.decoding()) return attend_cached(t, q, k, v, seq, head);
  // Names of attention's own: a layout may split heads here where it splits positions elsewhere.
  const Dim seq_q = seq.like("seq_q"), seq_k = seq.whole("seq_k");
  std::vector<Rename> queries{{seq, seq_q}}, keys{{seq, seq_k}}, back{{seq_q, seq}};
  for (const Dim& d : q.dims()) {
    if (d.name == seq.name || d.name == head.name || d.name == t.batch_name) continue;
    const Dim own = d.like(d.name + "_q");
    queries.push_back({d, own});
    back.push_back({own, d});
    const Dims has = k.dims();
    if (std::find(has.begin(), has.end(), d) != has.end()) keys.push_back({d, own});
  }
  q = rename(q, queries);
  k = rename(k, keys);
  v = rename(v, keys);
  if (!segments && (dropout == 0 || !t.training()))
    return rename(attention(q, k, v, {.query = seq_q, .key = seq_k, .head = head, .causal = true}), back);
  Dims shared;  // batch and key/value heads
  for (const Dim& d : v.dims())
    if (d.name != seq_k.name && d.name != head.name) shared.push_back(d);
  const Tensor scores = contract(q, k, head, along(shared)) * (1 / std::sqrt(double(head.size)));
  const Tensor future = greater(broadcast(iota(t.builder, seq_k), {seq_q, seq_k}), iota(t.builder, seq_q));
  Tensor seen = where(future, t.constant(-1e30), scores);
  if (segments) {
    const Tensor of_query = rename(segments, seq, seq_q), of_key = rename(segments, seq, seq_k);
    const Dim batch = segments.dim(t.batch_name);
    seen = where(not_equal(broadcast(of_key, {batch, seq_q, seq_k}), of_query), t.constant(-1e30), seen);
  }
  const Tensor weights = softmax(seen, seq_k);
  return rename(contract(t.dropout(weights, dropout, "attention_dropout"), v, seq_k, along(shared)), back);
}

}  // namespace stretto
