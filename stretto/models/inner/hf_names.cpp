#include "stretto/models/inner/hf_names.h"

#include "stretto/models/inner/latent.h"

namespace stretto {
namespace {

// Several of ours lie in one matrix there, one after the other along its outputs.
ParamSpec within(ParamSpec p, i64 offset, i64 own, i64 total) {
  p.cut = ParamSpec::Cut{.block = own, .offset = offset, .total = total};
  return p;
}

// Every other column.
ParamSpec alternating(ParamSpec p, i64 first, i64 own) {
  p.cut = ParamSpec::Cut{.block = 1, .stride = 2, .offset = first, .total = 2 * own};
  return p;
}

// One tensor for all experts.
ParamSpec for_all(ParamSpec p) {
  p.batched = true;
  return p;
}

void granite_experts(const ModelConfig& c, const std::string& h, const std::string& moe, std::vector<ParamSpec>& p) {
  const i64 e = c.experts, w = c.width, f = c.expert_width();
  p.push_back({h + "router", {w, e}, moe + "router.layer.weight", 1, true});
  p.push_back(within(for_all({h + "gate", {e, w, f}, moe + "input_linear.weight", 1, true}), 0, f, 2 * f));
  p.push_back(within(for_all({h + "up", {e, w, f}, moe + "input_linear.weight", 1, true}), f, f, 2 * f));
  p.push_back(for_all({h + "down", {e, f, w}, moe + "output_linear.weight", 1, true}));
}

void gpt_oss_experts(const ModelConfig& c, const std::string& h, const std::string& moe, std::vector<ParamSpec>& p) {
  const i64 e = c.experts, w = c.width, f = c.expert_width();
  p.push_back({h + "router", {w, e}, moe + "router.weight", 1, true});
  p.push_back({h + "router.bias", {e}, moe + "router.bias"});
  p.push_back(alternating(for_all({h + "gate", {e, w, f}, moe + "experts.gate_up_proj", 1}), 0, f));
  p.push_back(alternating(for_all({h + "up", {e, w, f}, moe + "experts.gate_up_proj", 1}), 1, f));
  p.push_back(for_all({h + "down", {e, f, w}, moe + "experts.down_proj", 1}));
  p.push_back(alternating(for_all({h + "gate.bias", {e, f}, moe + "experts.gate_up_proj_bias"}), 0, f));
  p.push_back(alternating(for_all({h + "up.bias", {e, f}, moe + "experts.gate_up_proj_bias"}), 1, f));
  p.push_back(for_all({h + "down.bias", {e, w}, moe + "experts.down_proj_bias"}));
}

void llama4_experts(const ModelConfig& c, const std::string& h, const std::string& moe, std::vector<ParamSpec>& p) {
  const i64 e = c.experts, w = c.width, f = c.expert_width();
  p.push_back({h + "router", {w, e}, moe + "router.weight", 1, true});
  p.push_back(within(for_all({h + "gate", {e, w, f}, moe + "experts.gate_up_proj", 1}), 0, f, 2 * f));
  p.push_back(within(for_all({h + "up", {e, w, f}, moe + "experts.gate_up_proj", 1}), f, f, 2 * f));
  p.push_back(for_all({h + "down", {e, f, w}, moe + "experts.down_proj", 1}));
}

// One matrix per expert: Mixtral's names, or those of everybody else.
void separate_experts(const ModelConfig& c, const std::string& h, const std::string& moe, std::vector<ParamSpec>& p) {
  const bool mixtral = c.hf_type.empty();
  const i64 e = c.experts, w = c.width, f = c.expert_width();
  p.push_back({h + "router", {w, e}, moe + "gate.weight", 1, true});
  if (c.router_bias) p.push_back({h + "router.bias", {e}, moe + "gate.bias"});
  if (c.select_bias) p.push_back({h + "select", {e}, moe + "gate.e_score_correction_bias"});
  const auto each = [&](const char* ours, const char* plain, const char* theirs, i64 in, i64 out) {
    p.push_back(
        {h + ours, {e, in, out}, fmt::format("{}experts.{{}}.{}.weight", moe, mixtral ? plain : theirs), 1, true, e});
  };
  each("gate", "w1", "gate_proj", w, f);
  each("up", "w3", "up_proj", w, f);
  each("down", "w2", "down_proj", f, w);
  if (!c.expert_bias) return;
  p.push_back({h + "gate.bias", {e, f}});
  p.push_back({h + "up.bias", {e, f}});
  p.push_back({h + "down.bias", {e, w}});
}

// How types call the feed-forward part of a layer, dense or with experts, and the expert that all tokens have.
struct BlockNames {
  std::string_view type, dense = "mlp.", sparse = "mlp.", shared = "shared_experts.";
  void (*experts)(const ModelConfig&, const std::string& h, const std::string& moe,
                  std::vector<ParamSpec>&) = separate_experts;
};
constexpr BlockNames usual_names{.type = "*"};
constexpr BlockNames block_names[] = {
    {.type = "", .sparse = "block_sparse_moe."},
    {.type = "granitemoe", .sparse = "block_sparse_moe.", .experts = granite_experts},
    {.type = "gpt_oss", .experts = gpt_oss_experts},
    {.type = "llama4_text",
     .dense = "feed_forward.",
     .sparse = "feed_forward.",
     .shared = "shared_expert.",
     .experts = llama4_experts},
    {.type = "qwen2_moe", .shared = "shared_expert."},
};
const BlockNames& names_of(std::string_view type) {
  for (const BlockNames& n : block_names)
    if (n.type == type) return n;
  return usual_names;
}

}  // namespace

void attention_params(const ModelConfig& c, const std::string& h, const std::string& l, std::vector<ParamSpec>& p) {
  const i64 w = c.width, k = c.kv_heads, g = c.group(), d = c.head_dim, v = c.value_dim ? c.value_dim : d;
  const std::string a = l + "self_attn.";
  // Matrices are stored as [out, in].
  const auto linear = [&](const std::string& ours, const std::string& theirs, std::vector<i64> sizes, int rows,
                          std::vector<i64> out, bool bias) {
    p.push_back({h + ours, std::move(sizes), a + theirs + ".weight", rows, true});
    if (bias) p.push_back({h + ours + ".bias", std::move(out), a + theirs + ".bias"});
  };
  if (c.latent()) {
    latent_params(c, h, l, p);
  } else if (c.hf_type == "phi3") {
    const i64 all = (c.heads + 2 * k) * d;
    const std::string qkv = a + "qkv_proj.weight";
    p.push_back(within({h + "q", {w, k, g, d}, qkv, 1, true}, 0, k * g * d, all));
    p.push_back(within({h + "k", {w, k, d}, qkv, 1, true}, k * g * d, k * d, all));
    p.push_back(within({h + "v", {w, k, d}, qkv, 1, true}, k * (g + 1) * d, k * d, all));
  } else {
    linear("q", "q_proj", {w, k, g, d}, 1, {k, g, d}, c.qkv_bias);
    linear("k", "k_proj", {w, k, d}, 1, {k, d}, c.qkv_bias);
    linear("v", "v_proj", {w, k, d}, 1, {k, d}, c.qkv_bias);
  }
  if (c.qk_norm || c.qk_norm_wide) {
    p.push_back({h + "q_norm", c.qk_norm_wide ? std::vector{k, g, d} : std::vector{d}, a + "q_norm.weight"});
    p.push_back({h + "k_norm", c.qk_norm_wide ? std::vector{k, d} : std::vector{d}, a + "k_norm.weight"});
  }
  if (c.sinks) p.push_back({h + "sinks", {k, g}, a + "sinks"});
  linear("o", "o_proj", {k, g, v, w}, 3, {w}, c.out_bias);
}

void gated_params(const ModelConfig& c, i64 ff, const std::string& h, const std::string& l, std::vector<ParamSpec>& p) {
  if (c.hf_type == "phi3") {
    p.push_back(within({h + "gate", {c.width, ff}, l + "gate_up_proj.weight", 1, true}, 0, ff, 2 * ff));
    p.push_back(within({h + "up", {c.width, ff}, l + "gate_up_proj.weight", 1, true}, ff, ff, 2 * ff));
    p.push_back({h + "down", {ff, c.width}, l + "down_proj.weight", 1, true});
    return;
  }
  const auto linear = [&](const char* ours, const char* theirs, i64 in, i64 out) {
    p.push_back({h + ours, {in, out}, l + theirs + ".weight", 1, true});
    if (c.mlp_bias) p.push_back({h + ours + ".bias", {out}, l + theirs + ".bias"});
  };
  if (c.gated) linear("gate", "gate_proj", c.width, ff);
  linear("up", "up_proj", c.width, ff);
  linear("down", "down_proj", ff, c.width);
}

void expert_params(const ModelConfig& c, i64 layer, const std::string& h, const std::string& l,
                   std::vector<ParamSpec>& p) {
  const BlockNames& names = names_of(c.hf_type);
  const auto under = [&](std::string_view block) { return l + std::string(block); };
  if (!c.has_experts(layer)) return gated_params(c, c.ff, h, under(names.dense), p);
  names.experts(c, h, under(names.sparse), p);
  if (c.shared_ff == 0) return;
  gated_params(c, c.shared_ff, h + "shared.", under(names.sparse) + std::string(names.shared), p);
  if (c.shared_gate) p.push_back({h + "shared.switch", {c.width}, l + "mlp.shared_expert_gate.weight", 1, true});
}

}  // namespace stretto
