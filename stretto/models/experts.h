// Feed-forward layers with experts. Per token a router chooses top_k of them; their results are added, weighted by what
// the router says of the chosen.
//
// Rows stay where their tokens are, and a product per row is with the matrix of its expert (ops/choose.h): so a layout
// may put experts wherever it likes. With a capacity, tokens travel to slots of their experts, and those who come late
// are dropped.
#pragma once
#include "stretto/models/llama.h"

namespace stretto {

// Metrics of a layer in training, after its name: how often each expert was chosen; with a capacity, how many choices
// got a slot.
inline constexpr std::string_view load_metric = "load", taken_metric = "taken";

// What the router's penalties and metrics are made of, added up over the layers.
struct Routing {
  Tensor balance;        // {batch}, or without dims when it is pooled at the end
  Tensor chosen, gates;  // pooled: sums over all tokens, {experts}
  Tensor z;              // {batch}: over the tokens the squared logarithm of the router's sum of exponentials, added up
  i64 layers = 0;
};

Tensor experts_layer(Trace&, const ModelConfig&, const LlamaShape&, Tensor h, Routing&);
// Adds the penalties to the trace, after the last layer.
void finish_routing(Trace&, const ModelConfig&, const Routing&, const Dim& batch, const Dim& seq);

}  // namespace stretto
