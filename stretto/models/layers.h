// What several families are made of.
//
//   x = x + t.dropout(contract(activate(u, Activation::gelu), down, ff), rate);
//   Tensor a = attend(t, q, k, v, seq, head, rate);
#pragma once
#include "stretto/models/config.h"
#include "stretto/trace/trace.h"

namespace stretto {

Tensor activate(Tensor x, Activation how);

// Causal attention of q over k and v, all with the dims `seq` and `head`. With a dropout of the weights they are made
// one by one; without, a fused kernel does it. With `segments` {batch seq} a query sees keys of its own segment only,
// and the weights are made one by one too. When decoding, keys and values of earlier tokens are kept.
Tensor attend(Trace& t, Tensor q, Tensor k, Tensor v, const Dim& seq, const Dim& head, double dropout,
              Tensor segments = {});

// The input `segments` with the dims of `ids`, for models whose attention stays within documents; empty for
// others, and when decoding.
Tensor segments_of(Trace& t, const ModelConfig& c, Tensor ids);

// When decoding, only what comes after the last token is asked for.
Tensor only_last(Trace& t, Tensor x, const Dim& seq);

inline Dim vocab_dim(const ModelConfig& c) { return Dim{"vocab", c.vocab}.padded(c.pad_vocab); }

}  // namespace stretto
