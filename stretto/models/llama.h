// What families share that are Llama but for their feed-forward layer.
//
//   .hidden = [](Trace& t, const ModelConfig& c, Tensor ids) { return llama_hidden(t, c, ids, my_feed_forward); }
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "stretto/models/family.h"

namespace stretto {

struct LlamaShape {
  Dim seq, seq_r, model, kv, group, head, ff;
  Tensor since;  // of documents; empty: attention sees everything before it
};
// h {batch seq model} -> {batch seq_r model}; called once per layer, in order, under the layer's scope.
using FeedForward = std::function<Tensor(Trace&, const ModelConfig&, const LlamaShape&, Tensor h, i64 layer)>;
// Appends its parameters: ours are under `h`, those on disk under `l`.
using FeedForwardParams = std::function<void(const ModelConfig&, i64 layer, const std::string& h, const std::string& l,
                                             std::vector<ParamSpec>&)>;

void llama_fill(ModelConfig&);
void llama_check(const ModelConfig&, std::vector<Fault>&);
Tensor llama_hidden(Trace&, const ModelConfig&, Tensor ids, const FeedForward&);
std::vector<ParamSpec> llama_params(const ModelConfig&, const FeedForwardParams&);

// The feed-forward layer of Llama itself, so wide.
Tensor gated_layer(Trace&, const ModelConfig&, const LlamaShape&, Tensor h, const Dim& ff);
// x with rotary positions, as layers of this kind have them, if they do.
Tensor turned(Trace&, const ModelConfig&, Tensor x, const Dim& seq, const Dim& head, char kind);

}  // namespace stretto
