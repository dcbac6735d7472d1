// Llama and its relatives (Mistral, Qwen2, Qwen3): rotary positions, RMSNorm, a gated feed-forward layer, grouped
// heads.
#include "stretto/models/llama.h"

#include <cmath>

#include "stretto/models/layers.h"
#include "stretto/ops/add.h"
#include "stretto/ops/boundary.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/embedding.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/rms_norm.h"
#include "stretto/ops/rotary.h"

namespace stretto {
namespace {

Tensor norm(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor x, std::string_view name) {
  return rename(rms_norm(x, t.gain(name, s.model), s.model, c.norm_eps), s.seq_r, s.seq);
}

// x times a weight of that name, plus a bias where the config has one.
Tensor linear(Trace& t, Tensor x, const std::string& name, const Dims& in, const Dims& out, bool bias, double std) {
  Dims dims = in;
  dims.insert(dims.end(), out.begin(), out.end());
  const Tensor y = contract(x, t.param(name, dims, {.init = normal(std)}), in);
  return bias ? y + t.bias(name + ".bias", out) : y;
}

RotaryOptions turns(const ModelConfig& c) {
  RotaryOptions o{.base = c.rope_base};
  const RopeScaling& s = c.rope_scaling;
  if (s.kind == RopeScaling::Kind::none) return o;
  o.factor = s.factor;
  if (s.kind == RopeScaling::Kind::linear) {
    o.low_freq_factor = 1e30;  // every frequency counts as a low one
    o.high_freq_factor = 2e30;
  } else {
    o.low_freq_factor = s.low_freq;
    o.high_freq_factor = s.high_freq;
    o.original_max_position = double(s.original_context);
  }
  return o;
}

Tensor turned(Trace& t, const ModelConfig& c, Tensor x, const Dim& seq, const Dim& head) {
  RotaryOptions o = turns(c);
  if (!t.decoding()) return rotary(x, seq, head, o);
  o.positions = t.cache().size;
  return rotary(x, t.positions(seq), seq, head, o);
}

Tensor gated(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h) {
  const double inner = c.init_std, residual = c.init_std / std::sqrt(2.0 * c.layers);
  const Tensor gate = linear(t, h, "gate", s.model, s.ff, c.mlp_bias, inner);
  const Tensor up = linear(t, h, "up", s.model, s.ff, c.mlp_bias, inner);
  const Tensor u = activate(gate, *c.activation) * up;
  const Tensor y = contract(u, t.param("down", {s.ff, s.model}, {.init = normal(residual)}), s.ff);
  return c.mlp_bias ? rename(y, s.seq, s.seq_r) + t.bias("down.bias", s.model) : rename(y, s.seq, s.seq_r);
}

Tensor block(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor x, const FeedForward& feed_forward) {
  const Dim &seq = s.seq, &seq_r = s.seq_r, &model = s.model, &kv = s.kv, &group = s.group, &head = s.head;
  const double inner = c.init_std, residual = c.init_std / std::sqrt(2.0 * c.layers);
  Tensor h = norm(t, c, s, x, "norm_1");
  Tensor q = linear(t, h, "q", model, {kv, group, head}, c.qkv_bias, inner);
  Tensor k = linear(t, h, "k", model, {kv, head}, c.qkv_bias, inner);
  const Tensor v = linear(t, h, "v", model, {kv, head}, c.qkv_bias, inner);
  if (c.qk_norm) {
    q = rms_norm(q, t.gain("q_norm", head), head, c.norm_eps);
    k = rms_norm(k, t.gain("k_norm", head), head, c.norm_eps);
  }
  q = turned(t, c, q, seq, head);
  k = turned(t, c, k, seq, head);
  const Tensor a = attend(t, q, k, v, {.seq = seq, .head = head, .dropout = c.attention_dropout, .since = s.since});
  const Tensor o = contract(a, t.param("o", {kv, group, head, model}, {.init = normal(residual)}), {kv, group, head});
  Tensor y = rename(o, seq, seq_r);
  if (c.out_bias) y = y + t.bias("o.bias", model);
  x = boundary(x + t.dropout(y, c.dropout));
  h = norm(t, c, s, x, "norm_2");
  y = feed_forward(t, c, s, h);
  return boundary(x + t.dropout(y, c.dropout));
}

void gated_params(const ModelConfig& c, const std::string& h, const std::string& l, std::vector<ParamSpec>& p) {
  const auto linear = [&](const char* ours, const char* theirs, i64 in, i64 out) {
    p.push_back({h + ours, {in, out}, l + theirs + ".weight", 1, true});
    if (c.mlp_bias) p.push_back({h + ours + ".bias", {out}, l + theirs + ".bias"});
  };
  linear("gate", "mlp.gate_proj", c.width, c.ff);
  linear("up", "mlp.up_proj", c.width, c.ff);
  linear("down", "mlp.down_proj", c.ff, c.width);
}

}  // namespace

void llama_fill(ModelConfig& c) {
  if (c.ff == 0) c.ff = (8 * c.width_in_range() / 3 + 31) / 32 * 32;
  if (!c.tied) c.tied = false;
  if (!c.activation) c.activation = Activation::silu;
}

void llama_check(const ModelConfig& c, std::vector<Fault>& faults) {
  const auto wrong = [&](std::string_view key, std::string hint, std::string what) {
    faults.push_back({fmt::format("model.{}", key), std::move(what), std::move(hint)});
  };
  if (c.head_dim % 2 != 0)
    wrong("head_dim", "use an even number: rotary positions turn pairs", fmt::format("head_dim is {}", c.head_dim));
  const RopeScaling& r = c.rope_scaling;
  if (r.kind == RopeScaling::Kind::none) return;
  if (!(r.factor >= 1) || !std::isfinite(r.factor))
    wrong("rope_scaling", "use a factor of at least 1", fmt::format("factor is {}", r.factor));
  if (r.kind != RopeScaling::Kind::llama3) return;
  if (!(r.low_freq > 0) || !(r.high_freq > r.low_freq))
    wrong("rope_scaling", "use 0 < low_freq < high_freq",
          fmt::format("low_freq is {} and high_freq {}", r.low_freq, r.high_freq));
  if (r.original_context < 1)
    wrong("rope_scaling", "use at least 1", fmt::format("original_context is {}", r.original_context));
}

Tensor llama_logits(Trace& t, const ModelConfig& c, Tensor ids, const FeedForward& feed_forward) {
  const Dim seq = ids.dim("seq"), vocab = vocab_dim(c);
  const LlamaShape s{.seq = seq,
                     .seq_r = seq.like("seq_r"),
                     .model = {"model", c.width},
                     .kv = {"kv", c.kv_heads},
                     .group = {"group", c.group()},
                     .head = {"head", c.head_dim},
                     .ff = {"ff", c.ff},
                     .since = document_starts(t, c, ids)};
  const Tensor wte = t.param("wte", {vocab, s.model}, {.init = normal(c.init_std)});
  Tensor x = rename(embedding(wte, ids, vocab), seq, s.seq_r);
  x = boundary(t.dropout(x, c.embedding_dropout, "embedding_dropout"));
  for (int i = 0; i < int(c.layers); ++i) {
    const Scope in(t, "h", i);
    x = block(t, c, s, x, feed_forward);
  }
  const Tensor h = only_last(t, norm(t, c, s, x, "norm_f"), seq);
  return contract(h, *c.tied ? wte : t.param("head", {vocab, s.model}, {.init = normal(c.init_std)}), s.model);
}

std::vector<ParamSpec> llama_params(const ModelConfig& c, const FeedForwardParams& feed_forward) {
  const i64 w = c.width, k = c.kv_heads, g = c.group(), d = c.head_dim;
  std::vector<ParamSpec> p{{"wte", {c.vocab, w}, "model.embed_tokens.weight", 1}};
  for (i64 i = 0; i < c.layers; ++i) {
    const std::string h = fmt::format("h.{}.", i), l = fmt::format("model.layers.{}.", i);
    // Matrices are stored as [out, in].
    const auto linear = [&](const std::string& ours, const std::string& theirs, std::vector<i64> sizes, int rows,
                            std::vector<i64> out, bool bias) {
      p.push_back({h + ours, std::move(sizes), l + theirs + ".weight", rows, true});
      if (bias) p.push_back({h + ours + ".bias", std::move(out), l + theirs + ".bias"});
    };
    p.push_back({h + "norm_1", {w}, l + "input_layernorm.weight"});
    linear("q", "self_attn.q_proj", {w, k, g, d}, 1, {k, g, d}, c.qkv_bias);
    linear("k", "self_attn.k_proj", {w, k, d}, 1, {k, d}, c.qkv_bias);
    linear("v", "self_attn.v_proj", {w, k, d}, 1, {k, d}, c.qkv_bias);
    if (c.qk_norm) {
      p.push_back({h + "q_norm", {d}, l + "self_attn.q_norm.weight"});
      p.push_back({h + "k_norm", {d}, l + "self_attn.k_norm.weight"});
    }
    linear("o", "self_attn.o_proj", {k, g, d, w}, 3, {w}, c.out_bias);
    p.push_back({h + "norm_2", {w}, l + "post_attention_layernorm.weight"});
    feed_forward(c, h, l, p);
  }
  p.push_back({"norm_f", {w}, "model.norm.weight"});
  if (!*c.tied) p.push_back({"head", {c.vocab, w}, "lm_head.weight", 1});
  return p;
}

constinit const Family llama_family{
    .name = "llama",
    .summary = "rotary positions, RMSNorm, gated SiLU, grouped heads",
    .fill = llama_fill,
    .check = llama_check,
    .params = [](const ModelConfig& c) { return llama_params(c, gated_params); },
    .logits = [](Trace& t, const ModelConfig& c, Tensor ids) { return llama_logits(t, c, ids, gated); },
    .stored_prefix = "model."};

}  // namespace stretto
