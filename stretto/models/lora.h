// Low-rank adapters beside the weights of a model, under the names of its parameters.
//
//   config.lora = Lora{.rank = 8, .alpha = 16, .params = lora_params(config, {"q_proj", "v_proj"})};
//   Weights whole = merged(config, std::move(weights));     // without adapters, and no less able
//
// The adapter of "h.0.q" is "h.0.q.lora_a" {in rank} and "h.0.q.lora_b" {rank out}.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "stretto/models/hf.h"

namespace stretto {

inline constexpr std::string_view lora_a = ".lora_a", lora_b = ".lora_b";
bool has_adapter(const Lora&, std::string_view param);

inline constexpr std::string_view all_targets = "all", exportable_targets = "exportable";

// The weights that targets are about, in the order of the model. A target is a name or a glob of ours ("q", "h.0.*"),
// a module as PEFT names it ("q_proj", "mlp.c_proj"), "all" (PEFT: "all-linear"), or "exportable": all whose adapters
// PEFT can load. One that is about nothing, or only about what has no adapters (embeddings, heads, routers, experts),
// is an Error.
std::vector<std::string> lora_params(const ModelConfig&, const std::vector<std::string>& targets);
// For an adapter that will be exported: "all" becomes "exportable" where that is less.
void take_exportable(const ModelConfig&, std::vector<std::string>& targets);

// The two parameters of one adapter, with the names and shapes of PEFT's files.
struct AdapterSpec {
  ParamSpec of, a, b;
  std::string module;   // "model.layers.0.self_attn.q_proj"; "": there is none that holds this weight alone
  std::string refusal;  // why PEFT cannot load it: "is a part of ..."; "": it can
};
std::vector<AdapterSpec> adapter_specs(const ModelConfig&);  // of its `lora`; none: none

// W + alpha / rank · A B for all that have an adapter; the adapters are gone.
Weights merged(const ModelConfig&, Weights);

}  // namespace stretto
