#include "stretto/models/inner/hf_parts.h"

#include <algorithm>

#include "stretto/base/text.h"

namespace stretto::hf {

void check_layers(FieldReader& r, std::string_view key, i64 named, i64 layers) {
  if (named != layers) r.fail(key, "it names {} layers of {}", named, layers);
}

void read_layer_types(FieldReader& r, i64 count, std::string& kinds) {
  std::vector<std::string> layers;
  if (!r.read("layer_types", layers)) return;
  for (const std::string& l : layers) {
    if (l != "full_attention" && l != "sliding_attention")
      return r.fail_hint("layer_types", fmt::format("'{}' is not supported", l),
                         "full_attention and sliding_attention are");
    kinds += l == "full_attention" ? 'f' : 'w';
  }
  check_layers(r, "layer_types", layers.size(), count);
}

Field layer_types(const ModelConfig& c) {
  Field::Array all;
  for (i64 i = 0; i < c.layers; ++i) all.push_back(c.kind_of(i) == 'w' ? "sliding_attention" : "full_attention");
  return all;
}

std::string shortest_period(const std::string& letters) {
  for (std::size_t n = 1; n < letters.size(); ++n) {
    bool fits = true;
    for (std::size_t i = n; i < letters.size() && fits; ++i) fits = letters[i] == letters[i - n];
    if (fits) return letters.substr(0, n);
  }
  return letters;
}

void rope(Exchange& x, ModelConfig& c, RopeHabits h) {
  if (x.reading()) return read_rope(x.in(), c, h);
  x.out().set("rope_theta", c.rope_base);
  x.out().set("rope_parameters", rope_config(c.rope_scaling));
  x.out().set("rope_parameters.rope_theta", c.rope_base);
}

// What all types have.
void common(Exchange& x, ModelConfig& c, const Habits& h) {
  x.need("num_hidden_layers", c.layers);
  x.need("hidden_size", c.width);
  x.need("num_attention_heads", c.heads);
  x("num_key_value_heads", c.kv_heads, at_least(1));
  x.need("intermediate_size", c.ff);
  x.need("max_position_embeddings", c.context);
  if (x.reading()) {
    x.in().read("vocab_size", c.vocab);
    c.tied = h.tied, c.norm_eps = h.norm_eps, c.rope_base = h.rope_base;
    x.in().read("tie_word_embeddings", c.tied);
    read_activation(x.in(), h.activation, c);
    read_rate(x.in(), "attention_dropout", c.attention_dropout, 0);
  } else {
    x.out().set(h.activation, written(*c.activation));
    x.out().set("attention_dropout", c.attention_dropout);
  }
  x("rms_norm_eps", c.norm_eps, above(0));
  x.ignore({"pretraining_tp"});
}

void head_dim(Exchange& x, ModelConfig& c) { x("head_dim", c.head_dim, at_least(1)); }

// Kinds of layers, by the list or by the type's habit.
void windows(Exchange& x, ModelConfig& c, const std::string& habit) {
  if (!x.reading()) {
    x.out().set("sliding_window", c.window > 0 ? Field(c.window) : Field());
    return void(x.out().set("layer_types", layer_types(c)));
  }
  x.in().read("sliding_window", c.window, at_least(1));
  std::string kinds;
  i64 every = 0;  // older files: so many layers, of which the last one sees all
  const bool told = x.in().read("sliding_window_pattern", every, between(1, ModelConfig::most_layers));
  read_layer_types(x.in(), c.layers, kinds);
  if (told && kinds.empty()) kinds = std::string(std::size_t(every - 1), 'w') + 'f';
  c.pattern = kinds.empty() ? habit : shortest_period(kinds);
  if (c.pattern == "f") c.pattern.clear(), c.window = 0;
  x.ignore({"_sliding_window_pattern"});
}

// Experts as most types have them.
void experts(Exchange& x, ModelConfig& c, std::string_view many) {
  if (x.reading() && many == "num_experts" && x.in().has("num_local_experts")) many = "num_local_experts";
  x.need(many, c.experts);
  x("num_experts_per_tok", c.top_k, at_least(1));
  double weight = c.balance > 0 ? c.balance : 0.001;
  bool used = c.balance > 0;
  x("router_aux_loss_coef", weight, at_least(0));
  x("output_router_logits", used);  // only then the loss has it
  if (!x.reading()) return;
  no_jitter(x.in());
  if (used) c.balance = weight;
  c.balance_pooled = true;
}

void granite(Exchange& x, ModelConfig& c) {
  common(x, c);
  rope(x, c);
  x("attention_bias", c.qkv_bias);
  c.out_bias = c.qkv_bias;
  x("embedding_multiplier", c.embedding_scale, above(0));
  x("residual_multiplier", c.residual_scale, above(0));
  if (x.reading()) c.attention_scale = 1;
  x("attention_multiplier", c.attention_scale, above(0));
  double divided = 1 / c.logit_scale;
  x("logits_scaling", divided, above(0));
  c.logit_scale = 1 / divided;
}

}  // namespace stretto::hf
