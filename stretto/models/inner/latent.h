// Attention by way of few numbers (DeepSeek's MLA): keys and values of all heads are made of one short vector per
// token, and the part of a key that is turned is shared by all heads.
#pragma once
#include "stretto/models/llama.h"

namespace stretto {

// q {batch seq kv group head}, k {batch seq kv head}, v {batch seq kv value}; queries and keys are turned already.
struct QueriesKeysValues {
  Tensor q, k, v;
};
QueriesKeysValues latent_projections(Trace&, const ModelConfig&, const LlamaShape&, Tensor h, char kind);
// Their parameters; `h` and `l` as for FeedForwardParams.
void latent_params(const ModelConfig&, const std::string& h, const std::string& l, std::vector<ParamSpec>&);

}  // namespace stretto
