// Relatives of Mixtral.
#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/models/inner/hf_parts.h"

namespace stretto::hf {
namespace {

// A key that other models of the kind give other values.
template <class T>
void only(Exchange& x, std::string_view key, const T& supported) {
  T value = supported;
  if (x.reading() && x.in().read(key, value) && value != supported)
    x.in().fail(key, "only {} is supported", supported);
}

void sigmoid_router(Exchange& x, ModelConfig& c) {
  c.score = Score::sigmoid;
  c.select_bias = true;
  only<std::string>(x, "scoring_func", "sigmoid");
  only<std::string>(x, "topk_method", "noaux_tc");
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
  x.ignore({"num_nextn_predict_layers", "output_router_logits", "aux_loss_alpha", "seq_aux", "ep_size",
            "router_aux_loss_coef"});
  if (!x.reading()) return;
  c.shared_ff = shared * c.expert_ff;
  const i64 layers = std::clamp<i64>(c.layers, 0, ModelConfig::most_layers), first = std::min(dense, layers);
  if (first > 0) c.sparse = std::string(std::size_t(first), 'd') + std::string(std::size_t(layers - first), 'e');
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

// Experts in every n-th layer only, but for a list of dense ones; or in a list of layers, where there is one.
struct LayerList {
  std::string_view key;
  bool with_experts;
};
void layers_with_experts(Exchange& x, ModelConfig& c, std::string_view every, const LayerList& list) {
  const i64 layers = std::clamp<i64>(c.layers, 0, ModelConfig::most_layers);
  if (!x.reading()) {
    Field::Array listed;
    for (i64 i = 0; i < layers; ++i)
      if (c.has_experts(i) == list.with_experts) listed.push_back(i);
    x.out().set(list.key, listed);
    return void(x.out().set(every, 1));
  }
  i64 step = 1;
  std::vector<i64> listed;
  x.in().read(every, step, at_least(1));
  const bool told = x.in().read(list.key, listed) && list.with_experts;
  std::string kinds;
  for (i64 i = 0; i < layers; ++i) {
    const bool in_list = std::find(listed.begin(), listed.end(), i) != listed.end();
    kinds += (told ? in_list : (i + 1) % step == 0 && !in_list) ? 'e' : 'd';
  }
  c.sparse = shortest_period(kinds);
  if (c.sparse == "e") c.sparse.clear();
}

void qwen_experts(Exchange& x, ModelConfig& c) {
  experts(x, c, "num_experts");
  x("moe_intermediate_size", c.expert_ff, at_least(1));
  if (x.reading()) c.normalize = false;
  x("norm_topk_prob", c.normalize);
  x.must_be("use_sliding_window", false);
  x.ignore({"sliding_window", "max_window_layers", "layer_types"});
  layers_with_experts(x, c, "decoder_sparse_step", {"mlp_only_layers", false});
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
  only(x, "swiglu_alpha", 1.702);
  x.ignore({"experts_per_token", "initial_context_length"});
}

void granite_moe(Exchange& x, ModelConfig& c) {
  granite(x, c);
  experts(x, c, "num_local_experts");
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
  rope(x, c, {.grows = true});
  c.rope_interleaved = true;
  if (x.reading()) c.normalize = true, c.groups = c.top_groups = 1;
  deep_experts(x, c);
}

void deepseek_v2(Exchange& x, ModelConfig& c) {
  latent(x, c);
  x.must_be("mlp_bias", false);
  c.normalize = false;
  only<std::string>(x, "scoring_func", "softmax");
  if (x.reading()) {
    std::string method = "greedy";
    x.in().read("topk_method", method);
    if (method == "greedy") c.groups = c.top_groups = 1;
    if (method != "greedy" && method != "group_limited_greedy") x.in().fail("topk_method", "it is not supported");
  } else {
    x.out().set("norm_topk_prob", false);
    x.out().set("topk_method", c.groups > 1 ? "group_limited_greedy" : "greedy");
  }
}

void deepseek_v3(Exchange& x, ModelConfig& c) {
  latent(x, c);
  sigmoid_router(x, c);
  x("rope_interleave", c.rope_interleaved);
}

// Which layers turn queries and keys, and which of them see only their chunk.
void llama4_layers(Exchange& x, ModelConfig& c) {
  const i64 layers = std::clamp<i64>(c.layers, 0, ModelConfig::most_layers);
  if (!x.reading()) {
    Field::Array turned, kinds;
    for (i64 i = 0; i < layers; ++i) {
      turned.push_back(i64(c.kind_of(i) != 'n'));
      kinds.push_back(c.kind_of(i) == 'c' ? "chunked_attention" : "full_attention");
    }
    x.out().set("no_rope_layers", turned);
    x.out().set("layer_types", kinds);
    return void(x.out().set("attention_chunk_size", c.chunk > 0 ? Field(c.chunk) : Field()));
  }
  i64 every = 4;
  std::vector<i64> turned;
  std::vector<std::string> kinds;
  c.chunk = 8192;
  if (x.in().field().find("attention_chunk_size") && !x.in().has("attention_chunk_size")) c.chunk = 0;
  x.in().read("attention_chunk_size", c.chunk, at_least(1));
  x.in().read("no_rope_layer_interval", every, at_least(1));
  if (x.in().read("no_rope_layers", turned) && !turned.empty())
    check_layers(x.in(), "no_rope_layers", turned.size(), layers);
  if (x.in().read("layer_types", kinds)) check_layers(x.in(), "layer_types", kinds.size(), layers);
  std::string pattern;
  for (i64 i = 0; i < layers; ++i) {
    const std::size_t at = std::size_t(i);
    const bool turns = at < turned.size() ? turned[at] != 0 : (i + 1) % every != 0;
    const std::string kind = at < kinds.size() ? kinds[at] : turns ? "chunked_attention" : "full_attention";
    if (kind != "full_attention" && (kind != "chunked_attention" || !turns))
      return x.in().fail_hint("layer_types",
                              fmt::format("layer {} is '{}' {} positions", i, kind, turns ? "with" : "without"),
                              "full_attention and, with positions, chunked_attention are supported");
    pattern += !turns ? 'n' : kind == "chunked_attention" ? 'c' : 'f';
  }
  c.pattern = shortest_period(pattern);
  if (c.pattern.find('c') == std::string::npos) c.chunk = 0;
  if (c.pattern == "c" || c.pattern == "f") c.pattern.clear();
}

// Queries without positions grow with what they see.
void llama4_temperature(Exchange& x, ModelConfig& c) {
  constexpr std::string_view key = "attn_temperature_tuning";
  bool tuned = c.temperature_floor > 0;
  if (x.reading()) tuned = true, c.temperature_floor = 8192;
  const Field* told = x.reading() ? x.in().field().find(key) : nullptr;
  if (const i64* number = told ? std::get_if<i64>(&told->value) : nullptr)  // older files have one
    tuned = *number != 0, x.ignore({key});
  else
    x(key, tuned);
  if (x.reading() || tuned) x("floor_scale", c.temperature_floor, at_least(1));
  x("attn_scale", c.temperature_scale, at_least(0));
  if (!tuned) c.temperature_floor = 0;
}

void llama4(Exchange& x, ModelConfig& c) {
  common(x, c, {.norm_eps = 1e-5, .rope_base = 5e5});
  if (x.reading()) c.head_dim = 128, c.expert_ff = c.shared_ff = c.ff, c.top_k = 1;
  if (!x.reading()) x.out().set("intermediate_size", c.expert_width());
  x.need("intermediate_size_mlp", c.ff);
  head_dim(x, c);
  rope(x, c);
  c.rope_interleaved = true;
  x("attention_bias", c.qkv_bias);
  c.out_bias = c.qkv_bias;
  if (x.reading()) c.qk_norm_bare = true;
  x("use_qk_norm", c.qk_norm_bare);
  llama4_layers(x, c);
  x.need("num_local_experts", c.experts);
  x("num_experts_per_tok", c.top_k, at_least(1));
  c.score = Score::sigmoid;
  c.route_on_input = true;
  c.normalize = false;
  layers_with_experts(x, c, "interleave_moe_layer_step", {"moe_layers", true});
  llama4_temperature(x, c);
  if (x.reading()) no_jitter(x.in());
  x.ignore({"for_llm_compressor", "output_router_logits", "router_aux_loss_coef"});
}

void glm4_moe(Exchange& x, ModelConfig& c) {
  common(x, c, {.norm_eps = 1e-5});
  head_dim(x, c);
  double partial = c.rope_dim && c.head_dim ? double(c.rope_dim) / c.head_dim : 1;
  if (x.reading()) partial = 0.5;
  rope(x, c, {.partial = true});
  x("partial_rotary_factor", partial, above_up_to(0, 1));
  if (x.reading() && c.rope_dim == 0) c.rope_dim = i64(c.head_dim * partial);
  if (!x.reading()) x.out().set("rope_parameters.partial_rotary_factor", partial);
  x("attention_bias", c.qkv_bias);
  x("use_qk_norm", c.qk_norm);
  sigmoid_router(x, c);
  if (x.reading()) c.normalize = true;
  deep_experts(x, c);
}

constexpr HfType sparse_table[] = {
    {"deepseek_v2", "DeepseekV2ForCausalLM", "mixtral", deepseek_v2},
    {"deepseek_v3", "DeepseekV3ForCausalLM", "mixtral", deepseek_v3},
    {"glm4_moe", "Glm4MoeForCausalLM", "mixtral", glm4_moe},
    {"gpt_oss", "GptOssForCausalLM", "mixtral", gpt_oss},
    {"granitemoe", "GraniteMoeForCausalLM", "mixtral", granite_moe},
    {"kimi_k2", "DeepseekV3ForCausalLM", "mixtral", deepseek_v3},
    {"llama4_text", "Llama4ForCausalLM", "mixtral", llama4},
    {"olmoe", "OlmoeForCausalLM", "mixtral", olmoe},
    {"qwen2_moe", "Qwen2MoeForCausalLM", "mixtral", qwen2_moe},
    {"qwen3_moe", "Qwen3MoeForCausalLM", "mixtral", qwen3_moe},
};

}  // namespace

std::span<const HfType> sparse_types() { return sparse_table; }

}  // namespace stretto::hf
