// Small configs that between them take every path of every family.
#pragma once
#include <string>
#include <vector>

#include "stretto/models/config.h"

namespace stretto::test {

struct Variant {
  std::string name;
  ModelConfig config;
};

inline std::vector<Variant> variants() {
  const ModelConfig gpt{.layers = 2, .width = 24, .heads = 3, .context = 8, .vocab = 21};
  const ModelConfig llama{
      .family = "llama", .layers = 2, .width = 24, .heads = 4, .kv_heads = 2, .head_dim = 4, .context = 8, .vocab = 21};
  std::vector<Variant> all{{"gpt2", gpt}, {"llama", llama}, {"mlp", gpt}};
  all[2].config.family = "mlp";
  const auto add = [&](std::string name, ModelConfig c, auto change) {
    change(c);
    all.push_back({std::move(name), c});
  };
  add("gpt2 untied, padded", gpt, [](ModelConfig& c) { c.tied = false, c.pad_vocab = 8; });
  add("gpt2 with the exact gelu", gpt, [](ModelConfig& c) { c.activation = Activation::gelu_erf, c.ff = 20; });
  add("gpt2 with relu", gpt, [](ModelConfig& c) { c.activation = Activation::relu; });
  add("llama tied, padded", llama, [](ModelConfig& c) { c.tied = true, c.pad_vocab = 8; });
  add("llama with all biases", llama, [](ModelConfig& c) { c.qkv_bias = c.out_bias = c.mlp_bias = true; });
  add("qwen2", llama, [](ModelConfig& c) { c.qkv_bias = true; });
  add("qwen3", llama, [](ModelConfig& c) { c.qk_norm = true, c.head_dim = 8; });
  add("llama without groups", llama, [](ModelConfig& c) { c.kv_heads = 4; });
  add("llama with stretched positions", llama, [](ModelConfig& c) {
    c.rope_scaling = {.kind = RopeScaling::Kind::llama3, .factor = 8, .original_context = 32};
  });
  ModelConfig mixtral = llama;
  mixtral.family = "mixtral", mixtral.experts = 4, mixtral.balance_pooled = true;
  all.push_back({"mixtral", mixtral});
  add("mixtral with one expert per token", mixtral, [](ModelConfig& c) { c.experts = 3, c.top_k = 1; });
  add("mlp untied", all[2].config, [](ModelConfig& c) { c.tied = false; });
  return all;
}

}  // namespace stretto::test
