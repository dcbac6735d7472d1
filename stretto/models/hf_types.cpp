#include "stretto/models/hf_types.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/text.h"
#include "stretto/models/hf_exchange.h"

namespace stretto {

namespace hf {

void read_layer_types(FieldReader& r, std::string& kinds) {
  std::vector<std::string> layers;
  if (!r.read("layer_types", layers)) return;
  for (const std::string& l : layers) {
    if (l != "full_attention" && l != "sliding_attention")
      return r.fail_hint("layer_types", fmt::format("'{}' is not supported", l),
                         "full_attention and sliding_attention are");
    kinds += l == "full_attention" ? 'f' : 'w';
  }
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

}  // namespace hf

namespace {

struct Habits {
  double norm_eps = 1e-6, rope_base = 1e4;
  bool tied = false;
  std::string_view activation = "hidden_act";
};

void rope(Exchange& x, ModelConfig& c, bool partial = false) {
  if (x.reading()) return hf::read_rope(x.in(), c, partial);
  x.out().set("rope_theta", c.rope_base);
  x.out().set("rope_parameters", hf::rope_config(c.rope_scaling));
  x.out().set("rope_parameters.rope_theta", c.rope_base);
}

// What all types have.
void common(Exchange& x, ModelConfig& c, const Habits& h = {}) {
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
    hf::read_activation(x.in(), h.activation, c);
    hf::read_rate(x.in(), "attention_dropout", c.attention_dropout, 0);
  } else {
    x.out().set(h.activation, hf::written(*c.activation));
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
    return void(x.out().set("layer_types", hf::layer_types(c)));
  }
  x.in().read("sliding_window", c.window, at_least(1));
  std::string kinds;
  hf::read_layer_types(x.in(), kinds);
  c.pattern = kinds.empty() ? habit : hf::shortest_period(kinds);
  if (c.pattern == "f") c.pattern.clear(), c.window = 0;
  x.ignore({"sliding_window_pattern", "_sliding_window_pattern"});
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
  if (used) c.balance = weight;
  c.balance_pooled = true;
}

// The first layers are dense, and one expert is there for all.
void deep_experts(Exchange& x, ModelConfig& c) {
  x.need("n_routed_experts", c.experts);
  x("num_experts_per_tok", c.top_k, at_least(1));
  x("moe_intermediate_size", c.expert_ff, at_least(1));
  i64 shared = c.expert_ff ? c.shared_ff / c.expert_ff : 0, dense = i64(c.sparse.find('e'));
  if (c.sparse.empty()) dense = 0;
  x.maybe("n_shared_experts", shared);
  x("first_k_dense_replace", dense, at_least(0));
  x("n_group", c.groups, at_least(1));
  x("topk_group", c.top_groups, at_least(1));
  x("norm_topk_prob", c.normalize);
  x("routed_scaling_factor", c.route_scale, above(0));
  i64 every = 1;
  if (x.reading() && x.in().read("moe_layer_freq", every) && every != 1)
    x.in().fail("moe_layer_freq", "only 1 is supported");
  x.ignore({"num_nextn_predict_layers", "output_router_logits", "aux_loss_alpha", "seq_aux", "ep_size", "scoring_func",
            "topk_method", "router_aux_loss_coef"});
  if (!x.reading()) return;
  c.shared_ff = shared * c.expert_ff;
  const i64 layers = std::clamp<i64>(c.layers, 0, ModelConfig::kMostLayers), first = std::min(dense, layers);
  if (first > 0) c.sparse = std::string(std::size_t(first), 'd') + std::string(std::size_t(layers - first), 'e');
}

void olmo2(Exchange& x, ModelConfig& c) {
  common(x, c, {.norm_eps = 1e-5});
  rope(x, c);
  x.must_be("attention_bias", false);
  c.norms = Norms::after;
  c.qk_norm_wide = true;
}

void olmoe(Exchange& x, ModelConfig& c) {
  common(x, c, {.norm_eps = 1e-5});
  rope(x, c);
  experts(x, c, "num_experts");
  if (x.reading()) c.normalize = false;
  x("norm_topk_prob", c.normalize);
  x.must_be("attention_bias", false);
  if (x.reading() && x.in().raw("clip_qkv") && x.in().has("clip_qkv")) x.in().fail("clip_qkv", "it is not supported");
  c.qk_norm_wide = true;
}

// Experts in some layers only, as lists of exceptions say.
void qwen_experts(Exchange& x, ModelConfig& c) {
  experts(x, c, "num_experts");
  x("moe_intermediate_size", c.expert_ff, at_least(1));
  if (x.reading()) c.normalize = false;
  x("norm_topk_prob", c.normalize);
  x.must_be("use_sliding_window", false);
  x.ignore({"sliding_window", "max_window_layers", "layer_types"});
  if (!x.reading()) {
    Field::Array dense;
    for (i64 i = 0; i < c.layers; ++i)
      if (!c.has_experts(i)) dense.push_back(i);
    x.out().set("mlp_only_layers", dense);
    return void(x.out().set("decoder_sparse_step", 1));
  }
  i64 step = 1;
  std::vector<i64> dense;
  x.in().read("decoder_sparse_step", step, at_least(1));
  x.in().read("mlp_only_layers", dense);
  std::string kinds;
  for (i64 i = 0; i < std::min(c.layers, ModelConfig::kMostLayers); ++i)
    kinds += (i + 1) % step != 0 || std::find(dense.begin(), dense.end(), i) != dense.end() ? 'd' : 'e';
  c.sparse = hf::shortest_period(kinds);
  if (c.sparse == "e") c.sparse.clear();
}

void qwen3_moe(Exchange& x, ModelConfig& c) {
  common(x, c);
  head_dim(x, c);
  rope(x, c);
  x("attention_bias", c.qkv_bias);
  c.out_bias = c.qkv_bias;
  c.qk_norm = true;
  qwen_experts(x, c);
}

void qwen2_moe(Exchange& x, ModelConfig& c) {
  common(x, c);
  rope(x, c);
  if (x.reading()) c.qkv_bias = true;
  x("qkv_bias", c.qkv_bias);
  x("shared_expert_intermediate_size", c.shared_ff, at_least(1));
  c.shared_gate = true;
  qwen_experts(x, c);
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
  c.embedding_scale = std::sqrt(double(c.width));
  i64 scalar = c.attention_scale > 0 ? std::llround(1 / (c.attention_scale * c.attention_scale)) : 256;
  x("query_pre_attn_scalar", scalar, at_least(1));
  c.attention_scale = 1 / std::sqrt(double(scalar));
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
    x.out().set("rope_parameters.full_attention", hf::rope_config(c.rope_scaling));
    x.out().set("rope_parameters.full_attention.rope_theta", c.rope_base);
    x.out().set("rope_parameters.sliding_attention.rope_type", "default");
    return void(x.out().set("rope_parameters.sliding_attention.rope_theta", c.local_rope_base));
  }
  c.rope_base = 1e6, c.local_rope_base = 1e4;
  x.in().read("rope_local_base_freq", c.local_rope_base, above(0));
  const Field* both = x.in().field().find("rope_parameters");
  if (!both || !both->find("full_attention")) return hf::read_rope(x.in(), c);
  FieldReader kinds = x.in().section("rope_parameters");
  hf::read_rope_table(kinds, "full_attention", c);
  FieldReader local = kinds.section("sliding_attention");
  local.read("rope_theta", c.local_rope_base, above(0));
  local.ignore({"rope_type"});
  x.ignore({"rope_theta", "rope_scaling"});
}

void gpt_oss(Exchange& x, ModelConfig& c) {
  common(x, c, {.norm_eps = 1e-5, .rope_base = 150000});
  if (x.reading()) c.window = 128, c.head_dim = 64, c.qkv_bias = true;
  head_dim(x, c);
  rope(x, c);
  windows(x, c, "wf");
  experts(x, c, "num_local_experts");
  x("attention_bias", c.qkv_bias);
  c.out_bias = c.qkv_bias;
  c.sinks = c.router_bias = c.expert_bias = true;
  if (x.reading()) c.expert_clamp = 7;
  x("swiglu_limit", c.expert_clamp, above(0));
  x.ignore({"swiglu_alpha", "experts_per_token", "initial_context_length", "router_jitter_noise"});
  if (x.reading() && x.in().has("quantization_config"))
    x.in().fail("quantization_config", "weights of fewer bits are not supported; save them as bfloat16 first");
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

void granite_dense(Exchange& x, ModelConfig& c) {
  granite(x, c);
  x("mlp_bias", c.mlp_bias);
}

void granite_moe(Exchange& x, ModelConfig& c) {
  granite(x, c);
  experts(x, c, "num_local_experts");
}

void phi3(Exchange& x, ModelConfig& c) {
  common(x, c, {.norm_eps = 1e-5});
  double partial = 1;
  const i64 head = c.head_dim ? c.head_dim : c.heads > 0 ? c.width / c.heads : 0;
  if (c.rope_dim && head) partial = double(c.rope_dim) / double(head);
  rope(x, c, true);
  x("partial_rotary_factor", partial, above_up_to(0, 1));
  if (x.reading() && partial < 1) c.rope_dim = i64(double(head) * partial);
  if (!x.reading() && partial < 1) x.out().set("rope_parameters.partial_rotary_factor", partial);
  x("resid_pdrop", c.dropout);
  x("embd_pdrop", c.embedding_dropout);
  x.maybe("sliding_window", c.window);
  x.ignore({"original_max_position_embeddings"});
  if (!x.reading()) x.out().set("pad_token_id", Field());  // its habit lies beyond small vocabularies
}

// Keys and values by way of few numbers.
void latent(Exchange& x, ModelConfig& c) {
  common(x, c);
  x.maybe("q_lora_rank", c.q_rank);
  x.need("kv_lora_rank", c.kv_rank);
  i64 plain = c.head_dim - c.rope_dim;
  x.need("qk_nope_head_dim", plain);
  x.need("qk_rope_head_dim", c.rope_dim);
  x.need("v_head_dim", c.value_dim);
  c.head_dim = plain + c.rope_dim;
  x.ignore({"head_dim", "qk_head_dim"});
  x.must_be("attention_bias", false);
  rope(x, c);
  c.rope_interleaved = true;
  if (x.reading()) c.normalize = true, c.groups = c.top_groups = 1;
  deep_experts(x, c);
}

void deepseek_v2(Exchange& x, ModelConfig& c) {
  latent(x, c);
  x.must_be("mlp_bias", false);
  c.normalize = false;
  if (x.reading()) {
    std::string method = "greedy";
    x.in().read("topk_method", method);
    if (method == "greedy") c.groups = c.top_groups = 1;
    if (method != "greedy" && method != "group_limited_greedy") x.in().fail("topk_method", "it is not supported");
    if (c.rope_scaling.kind != RopeScaling::Kind::none)
      x.in().fail("rope_scaling", "it is not supported for this type");
  } else {
    x.out().set("norm_topk_prob", false);
    x.out().set("topk_method", c.groups > 1 ? "group_limited_greedy" : "greedy");
  }
}

void deepseek_v3(Exchange& x, ModelConfig& c) {
  latent(x, c);
  c.score = Score::sigmoid;
  c.select_bias = true;
  x("rope_interleave", c.rope_interleaved);
  if (x.reading() && c.rope_scaling.kind == RopeScaling::Kind::yarn) {
    // Scores grow with the context, too: by the square of what mscale_all_dim says.
    const Field *table = x.in().field().find("rope_scaling"), *now = x.in().field().find("rope_parameters");
    const Field* all = now ? now->find("mscale_all_dim") : table ? table->find("mscale_all_dim") : nullptr;
    const double* real = all ? std::get_if<double>(&all->value) : nullptr;
    const i64* whole = all ? std::get_if<i64>(&all->value) : nullptr;
    if ((real && *real != 0) || (whole && *whole != 0))
      x.in().fail("rope_scaling", "mscale_all_dim is not supported; leave rope_scaling out for short contexts");
  }
}

void glm4_moe(Exchange& x, ModelConfig& c) {
  common(x, c, {.norm_eps = 1e-5});
  head_dim(x, c);
  double partial = c.rope_dim && c.head_dim ? double(c.rope_dim) / double(c.head_dim) : 1;
  if (x.reading()) partial = 0.5;
  rope(x, c, true);
  x("partial_rotary_factor", partial, above_up_to(0, 1));
  if (x.reading() && c.rope_dim == 0) c.rope_dim = i64(double(c.head_dim) * partial);
  if (!x.reading()) x.out().set("rope_parameters.partial_rotary_factor", partial);
  x("attention_bias", c.qkv_bias);
  x("use_qk_norm", c.qk_norm);
  c.score = Score::sigmoid;
  c.select_bias = true;
  if (x.reading()) c.normalize = true;
  deep_experts(x, c);
}

constexpr HfType kAll[] = {
    {"deepseek_v2", "DeepseekV2ForCausalLM", "mixtral", deepseek_v2},
    {"deepseek_v3", "DeepseekV3ForCausalLM", "mixtral", deepseek_v3},
    {"gemma2", "Gemma2ForCausalLM", "llama", gemma2},
    {"gemma3_text", "Gemma3ForCausalLM", "llama", gemma3},
    {"glm4_moe", "Glm4MoeForCausalLM", "mixtral", glm4_moe},
    {"gpt_oss", "GptOssForCausalLM", "mixtral", gpt_oss},
    {"granite", "GraniteForCausalLM", "llama", granite_dense},
    {"granitemoe", "GraniteMoeForCausalLM", "mixtral", granite_moe},
    {"kimi_k2", "DeepseekV3ForCausalLM", "mixtral", deepseek_v3},
    {"olmo2", "Olmo2ForCausalLM", "llama", olmo2},
    {"olmoe", "OlmoeForCausalLM", "mixtral", olmoe},
    {"phi3", "Phi3ForCausalLM", "llama", phi3},
    {"qwen2_moe", "Qwen2MoeForCausalLM", "mixtral", qwen2_moe},
    {"qwen3_moe", "Qwen3MoeForCausalLM", "mixtral", qwen3_moe},
};

}  // namespace

std::span<const HfType> hf_types() { return kAll; }

const HfType* find_hf_type(std::string_view name) {
  const auto it = std::find_if(std::begin(kAll), std::end(kAll), [&](const HfType& t) { return t.name == name; });
  return it == std::end(kAll) ? nullptr : it;
}

void read_type(const HfType& type, FieldReader& r, ModelConfig& c) {
  c.family = type.family;
  c.hf_type = type.name;
  Exchange x(r);
  type.keys(x, c);
}

Field write_type(const HfType& type, const ModelConfig& config) {
  if (config.family != type.family)
    throw Error("hugging face", "model type {} is of family '{}' and not '{}'", type.name, type.family, config.family)
        .hint("use family '{}', or another hf_type", type.family);
  Field f{Field::Table{}};
  f.set("model_type", std::string(type.name));
  f.set("architectures", Field::Array{Field(std::string(type.architecture))});
  ModelConfig c = config;
  Exchange x(f);
  type.keys(x, c);
  return f;
}

}  // namespace stretto
