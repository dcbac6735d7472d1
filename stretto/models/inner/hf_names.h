// What parameters of Llama and its relatives are called on disk, and how they lie there.
//
//   attention_params(config, "h.0.", "model.layers.0.", params);
#pragma once
#include <string>
#include <vector>

#include "stretto/models/family.h"

namespace stretto {

// Ours are under `h`, those on disk under `l`.
void attention_params(const ModelConfig&, const std::string& h, const std::string& l, std::vector<ParamSpec>&);
// Under `l` itself, e.g. "model.layers.0.mlp.".
void gated_params(const ModelConfig&, i64 ff, const std::string& h, const std::string& l, std::vector<ParamSpec>&);
// Of a layer with experts, or a dense one between them.
void expert_params(const ModelConfig&, i64 layer, const std::string& h, const std::string& l, std::vector<ParamSpec>&);

}  // namespace stretto
