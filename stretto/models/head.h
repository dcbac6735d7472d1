// Both ends of a model that know its vocabulary: the embedding, and the head with its loss.
//
//   Tensor x = embedded(t, c, ids);                  // {batch seq model}
//   ...
//   return head_loss(t, c, h, targets);              // h: after the last norm
//
// With head_parts above 1 the head comes in parts, each with its slice of the vocabulary, a parameter of its own
// (head.0, head.1, ...) and boundaries between them. A tied embedding then comes in the same parts (wte.0, wte.1, ...).
#pragma once
#include <string>
#include <vector>

#include "stretto/models/family.h"
#include "stretto/models/hf.h"

namespace stretto {

struct VocabPart {
  std::string param, scope;  // its name, and that of the head's nodes: "wte.2" and "head.2"
  Dim dim;
  i64 first = 0;  // id of its first row
};
// Of `param`, which is "wte" or "head".
std::vector<VocabPart> vocab_parts(const ModelConfig&, const std::string& param);
// Beyond so many a part would have no row.
i64 most_head_parts(const ModelConfig&);
// Appends its parameters. Parts lie together in one tensor on disk.
void vocab_params(const ModelConfig&, const std::string& param, const std::string& stored, std::vector<ParamSpec>&);

Tensor embedded(Trace&, const ModelConfig&, Tensor ids);
// h {batch seq_r model}
Loss head_loss(Trace&, const ModelConfig&, Tensor h, Tensor targets);
Tensor head_logits(
    Trace&, const ModelConfig&, Tensor h,
    const Dim& seq);  // {batch seq vocab}, without padding if it comes in parts; when decoding, of the last id

// Weights of a model with head_parts = 1 as those of the config, and back.
Weights in_head_parts(const ModelConfig&, Weights);
Weights head_parts_joined(const ModelConfig&, Weights);

}  // namespace stretto
