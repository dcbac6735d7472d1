#include "stretto/models/layers.h"

#include <cmath>

#include "stretto/ops/attention.h"
#include "stretto/ops/broadcast.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/gelu.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/relu.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/silu.h"
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

Tensor attend(Trace& t, Tensor q, Tensor k, Tensor v, const Dim& seq, const Dim& head, double dropout) {
  const Dim seq_k = seq.whole("seq_k");
  k = rename(k, seq, seq_k);
  v = rename(v, seq, seq_k);
  if (dropout == 0 || !t.training())
    return attention(q, k, v, {.query = seq, .key = seq_k, .head = head, .causal = true});
  Dims shared;  // batch and key/value heads
  for (const Dim& d : v.dims())
    if (d.name != seq_k.name && d.name != head.name) shared.push_back(d);
  const Tensor scores = contract(q, k, head, along(shared)) * (1 / std::sqrt(double(head.size)));
  const Tensor future = greater(broadcast(iota(t.builder, seq_k), {seq, seq_k}), iota(t.builder, seq));
  const Tensor weights = softmax(where(future, t.constant(-1e30), scores), seq_k);
  return contract(t.dropout(weights, dropout, "attention_dropout"), v, seq_k, along(shared));
}

}  // namespace stretto
