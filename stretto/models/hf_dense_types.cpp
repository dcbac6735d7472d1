// Relatives of Llama without experts.
#include <cmath>

#include "stretto/models/inner/hf_parts.h"

namespace stretto::hf {
namespace {

void olmo2(Exchange& x, ModelConfig& c) {
  common(x, c, {.norm_eps = 1e-5});
  rope(x, c);
  x.must_be("attention_bias", false);
  c.norms = Norms::after;
  c.qk_norm_wide = true;
}

// Gains are 1 + w, norms stand on both sides, and the embedding is scaled to the width.
void gemma(Exchange& x, ModelConfig& c) {
  common(x, c, {.tied = true, .activation = "hidden_activation"});
  head_dim(x, c);
  x.must_be("attention_bias", false);
  x.maybe("attn_logit_softcapping", c.attention_softcap);
  x.maybe("final_logit_softcapping", c.logit_softcap);
  x.ignore({"hidden_act", "use_bidirectional_attention", "cache_implementation"});
  c.unit_gain = true;
  c.norms = Norms::both;
  c.embedding_scale = std::sqrt(c.width);
  i64 scalar = c.attention_scale > 0 ? std::llround(1 / (c.attention_scale * c.attention_scale)) : 256;
  x("query_pre_attn_scalar", scalar, at_least(1));
  c.attention_scale = 1 / std::sqrt(scalar);
  if (!c.activation) c.activation = Activation::gelu;
}

void gemma2(Exchange& x, ModelConfig& c) {
  if (x.reading()) c.attention_softcap = 50, c.logit_softcap = 30, c.window = 4096;
  gemma(x, c);
  rope(x, c);
  windows(x, c, "wf");
}

void gemma3(Exchange& x, ModelConfig& c) {
  if (x.reading()) c.window = 4096;
  gemma(x, c);
  c.qk_norm = true;
  windows(x, c, "wwwwwf");
  if (!x.reading()) {
    x.out().set("rope_parameters.full_attention", rope_config(c.rope_scaling));
    x.out().set("rope_parameters.full_attention.rope_theta", c.rope_base);
    x.out().set("rope_parameters.sliding_attention.rope_type", "default");
    return void(x.out().set("rope_parameters.sliding_attention.rope_theta", c.local_rope_base));
  }
  c.rope_base = 1e6, c.local_rope_base = 1e4;
  x.in().read("rope_local_base_freq", c.local_rope_base, above(0));
  const Field* both = x.in().field().find("rope_parameters");
  if (!both || !both->find("full_attention")) return read_rope(x.in(), c);
  FieldReader kinds = x.in().section("rope_parameters");
  read_rope_table(kinds, "full_attention", c);
  FieldReader local = kinds.section("sliding_attention");
  local.read("rope_theta", c.local_rope_base, above(0));
  local.ignore({"rope_type"});
  x.ignore({"rope_theta", "rope_scaling"});
}

void granite_dense(Exchange& x, ModelConfig& c) {
  granite(x, c);
  x("mlp_bias", c.mlp_bias);
}

void phi3(Exchange& x, ModelConfig& c) {
  common(x, c, {.norm_eps = 1e-5});
  double partial = 1;
  const i64 head = c.head_dim ? c.head_dim : c.heads > 0 ? c.width / c.heads : 0;
  if (c.rope_dim && head) partial = double(c.rope_dim) / head;
  rope(x, c, {.partial = true});
  x("partial_rotary_factor", partial, above_up_to(0, 1));
  if (x.reading() && partial < 1) c.rope_dim = i64(head * partial);
  if (!x.reading() && partial < 1) x.out().set("rope_parameters.partial_rotary_factor", partial);
  x("resid_pdrop", c.dropout);
  x("embd_pdrop", c.embedding_dropout);
  x.maybe("sliding_window", c.window);
  for (const char* bias : {"attention_bias", "mlp_bias", "lm_head_bias"}) x.must_be(bias, false);
  x.ignore({"original_max_position_embeddings", "interpolate_factor", "full_attn_mod"});
  if (x.reading()) return;
  x.out().set("pad_token_id", Field());  // its habit lies beyond small vocabularies
  if (c.rope_scaling.kind == RopeScaling::Kind::longrope)
    x.out().set("original_max_position_embeddings", c.rope_scaling.original_context);
}

constexpr HfType dense_table[] = {
    {"gemma2", "Gemma2ForCausalLM", "llama", gemma2},
    {"gemma3_text", "Gemma3ForCausalLM", "llama", gemma3},
    {"granite", "GraniteForCausalLM", "llama", granite_dense},
    {"olmo2", "Olmo2ForCausalLM", "llama", olmo2},
    {"phi3", "Phi3ForCausalLM", "llama", phi3},
};

}  // namespace

std::span<const HfType> dense_types() { return dense_table; }

}  // namespace stretto::hf
