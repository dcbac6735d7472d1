// What several families are made of.
//
//   x = x + t.dropout(linear(t, c, activate(u, Activation::gelu), "down", ff, model, normal()), rate);
//   Tensor a = attend(t, q, k, v, {.seq = seq, .head = head, .dropout = rate});
#pragma once
#include <optional>

#include "stretto/models/config.h"
#include "stretto/trace/trace.h"

namespace stretto {

// x times a weight of that name, {in out}, over `in`; where the config has an adapter for it, plus that. Every matrix
// of a model is applied here, but for embeddings, heads and experts.
Tensor linear(Trace& t, const ModelConfig& c, Tensor x, const std::string& name, const Dims& in, const Dims& out,
              const Init& init);

Tensor activate(Tensor x, Activation how);

// How a layer attends. All but `seq` and `head` is as in ops/attention.h.
struct Attending {
  Dim seq, head;
  double dropout = 0;  // of the weights, which are then made one by one
  Tensor since = {};   // {batch seq}: the first position that a query sees
  std::optional<Dim> value = {};
  std::optional<double> scale = {};
  i64 window = 0, chunk = 0;
  double softcap = 0;
  Tensor sinks = {};  // along dims of q's heads
};
// Causal attention of q over k and v, all with the dims `seq` and `head`. When decoding, keys and values of earlier
// tokens are kept.
Tensor attend(Trace& t, Tensor q, Tensor k, Tensor v, const Attending&);

// For models whose attention stays within documents: where the document of a position begins, of the input `segments`
// with the dims of `ids`. Empty for others, and when decoding.
Tensor document_starts(Trace& t, const ModelConfig& c, Tensor ids);

// When decoding, only what comes after the last token is asked for.
Tensor only_last(Trace& t, Tensor x, const Dim& seq);

inline Dim vocab_dim(const ModelConfig& c) { return Dim{"vocab", c.vocab}.padded(c.pad_vocab); }

}  // namespace stretto
