// Llama and its relatives (Mistral, Qwen, OLMo, Gemma, Granite, Phi): rotary positions, RMSNorm, a gated feed-forward
// layer, grouped heads.
#include "stretto/models/llama.h"

#include <algorithm>
#include <cmath>

#include "stretto/models/head.h"
#include "stretto/models/inner/hf_names.h"
#include "stretto/models/inner/latent.h"
#include "stretto/models/inner/layers.h"
#include "stretto/models/inner/rope.h"
#include "stretto/ops/add.h"
#include "stretto/ops/boundary.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/log.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/rms_norm.h"
#include "stretto/ops/rsqrt.h"
#include "stretto/ops/square.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"

namespace stretto {
namespace {

Tensor gain_of(Trace& t, const ModelConfig& c, std::string_view name, const Dims& dims) {
  return c.unit_gain ? t.bias(name, dims) + 1.0 : t.gain(name, dims);
}

Tensor normalized(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor x, std::string_view name) {
  return rms_norm(x, gain_of(t, c, name, s.model), s.model, c.norm_eps);
}
Tensor norm(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor x, std::string_view name) {
  return rename(normalized(t, c, s, x, name), s.seq_r, s.seq);
}

// RMSNorm of queries or keys, per head or over all heads together.
Tensor head_norm(Trace& t, const ModelConfig& c, Tensor x, std::string_view name, const Dims& heads) {
  if (!c.qk_norm_wide) return rms_norm(x, gain_of(t, c, name, heads.back()), heads.back(), c.norm_eps);
  double n = 1;
  for (const Dim& d : heads) n *= d.valid();
  return x * rsqrt(sum(square(x), heads) * (1 / n) + c.norm_eps) * gain_of(t, c, name, heads);
}

Tensor bare_norm(const ModelConfig& c, Tensor x, const Dim& head) {
  return x * rsqrt(sum(square(x), head) * (1.0 / head.valid()) + c.norm_eps);
}

// How much longer queries become that see far: 1 + scale ln(1 + k), k steps of so many positions before it.
Tensor temperature(Trace& t, const ModelConfig& c, const LlamaShape& s) {
  Tensor at = t.decoding() ? t.positions(s.seq) : iota(t.builder, s.seq);
  if (s.since) at = at - s.since;
  const Tensor steps = cast((cast(at, f64) + 1.5) * (1.0 / c.temperature_floor), i32);  // .5: it never rounds up
  return cast(log(cast(steps, f64) + 1.0) * c.temperature_scale + 1.0, t.dtype());
}

// With a bias where the config has one.
Tensor linear(Trace& t, const ModelConfig& c, Tensor x, const std::string& name, const Dims& in, const Dims& out,
              bool bias) {
  const Tensor y = linear(t, c, x, name, in, out, normal(c.init_std));
  return bias ? y + t.bias(name + ".bias", out) : y;
}

double residual_std(const ModelConfig& c) { return c.init_std / std::sqrt(2.0 * c.layers); }

QueriesKeysValues projections(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, char kind) {
  if (c.latent()) return latent_projections(t, c, s, h, kind);
  const Dims of_q{s.kv, s.group, s.head}, of_k{s.kv, s.head};
  Tensor q = linear(t, c, h, "q", s.model, of_q, c.qkv_bias);
  Tensor k = linear(t, c, h, "k", s.model, of_k, c.qkv_bias);
  const Tensor v = linear(t, c, h, "v", s.model, of_k, c.qkv_bias);
  if (c.qk_norm || c.qk_norm_wide) {
    q = head_norm(t, c, q, "q_norm", of_q);
    k = head_norm(t, c, k, "k_norm", of_k);
  }
  q = turned(t, c, q, s.seq, s.head, kind);
  k = turned(t, c, k, s.seq, s.head, kind);
  if (c.qk_norm_bare && kind != 'n') q = bare_norm(c, q, s.head), k = bare_norm(c, k, s.head);
  if (c.temperature_floor > 0 && kind == 'n') q = q * temperature(t, c, s);
  return {q, k, v};
}

// h {batch seq model} -> {batch seq_r model}
Tensor attention_layer(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, i64 layer) {
  const char kind = c.kind_of(layer);
  const auto [q, k, v] = projections(t, c, s, h, kind);
  Attending how{.seq = s.seq, .head = s.head, .dropout = c.attention_dropout, .since = s.since};
  if (c.latent()) how.value = Dim{"value", c.value_dim};
  how.scale = (c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(c.head_dim)) * score_growth(c.rope_scaling);
  if (kind == 'w') how.window = c.window;
  if (kind == 'c') how.chunk = c.chunk;
  how.softcap = c.attention_softcap;
  if (c.sinks) how.sinks = t.bias("sinks", {s.kv, s.group});
  const Dims from{s.kv, s.group, how.value.value_or(s.head)};
  const Tensor o = linear(t, c, attend(t, q, k, v, how), "o", from, s.model, normal(residual_std(c)));
  const Tensor y = rename(o, s.seq, s.seq_r);
  return c.out_bias ? y + t.bias("o.bias", s.model) : y;
}

Tensor block(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor x, i64 layer,
             const FeedForward& feed_forward) {
  const auto half = [&](const std::string& name, const auto& body) {
    const Tensor h = c.norms == Norms::after ? rename(x, s.seq_r, s.seq) : norm(t, c, s, x, name);
    Tensor y = body(h);
    if (c.norms != Norms::before) y = normalized(t, c, s, y, c.norms == Norms::both ? name + "_after" : name);
    if (c.residual_scale != 1) y = y * c.residual_scale;
    x = boundary(x + t.dropout(y, c.dropout));
  };
  half("norm_1", [&](Tensor h) { return attention_layer(t, c, s, h, layer); });
  half("norm_2", [&](Tensor h) { return feed_forward(t, c, s, h, layer); });
  return x;
}

}  // namespace

Tensor turned(Trace& t, const ModelConfig& c, Tensor x, const Dim& seq, const Dim& head, char kind) {
  if (kind == 'n') return x;
  RotaryOptions o = turns_of(c, kind, t.decoding() ? t.cache().size : seq.valid());
  if (!t.decoding()) return rotary(x, seq, head, o);
  o.positions = t.cache().size;
  return rotary(x, t.positions(seq), seq, head, o);
}

Tensor gated_layer(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, const Dim& ff) {
  const auto wide = [&](const char* name) { return linear(t, c, h, name, s.model, ff, c.mlp_bias); };
  Tensor u;
  if (c.gated) {
    const Tensor gate = wide("gate"), up = wide("up");
    u = activate(gate, *c.activation) * up;
  } else {
    u = activate(wide("up"), *c.activation);
  }
  const Tensor y = linear(t, c, u, "down", ff, s.model, normal(residual_std(c)));
  return c.mlp_bias ? rename(y, s.seq, s.seq_r) + t.bias("down.bias", s.model) : rename(y, s.seq, s.seq_r);
}

void llama_fill(ModelConfig& c) {
  if (c.ff == 0) c.ff = (8 * c.width_in_range() / 3 + 31) / 32 * 32;
  if (!c.tied) c.tied = false;
  if (!c.activation) c.activation = Activation::silu;
}

namespace {

// Options that only some relatives have, and how they go together.
void check_relatives(const ModelConfig& c, std::vector<Fault>& faults) {
  const auto wrong = [&](std::string_view key, std::string hint, std::string what) {
    faults.push_back({fmt::format("model.{}", key), std::move(what), std::move(hint)});
  };
  if (c.pattern.find_first_not_of("fwcn") != std::string::npos)
    wrong(
        "pattern",
        "use f for layers that see all before them, n for those that have no positions either, w for windows and c for "
        "chunks, e.g. \"wwf\"",
        fmt::format("pattern is \"{}\"", c.pattern));
  if (c.pattern.find('w') != std::string::npos && c.window < 1)
    wrong("window", "use at least 1, e.g. 4096", fmt::format("layers have a window, and window is {}", c.window));
  if (c.pattern.find('c') != std::string::npos && c.chunk < 1)
    wrong("chunk", "use at least 1, e.g. 8192", fmt::format("layers see chunks, and chunk is {}", c.chunk));
  if (c.pattern.empty() && c.window > 0 && c.chunk > 0)
    wrong("pattern", "say which layers have which, e.g. \"wc\"",
          fmt::format("window is {} and chunk {}, and there is no pattern", c.window, c.chunk));
  if (c.qk_norm + c.qk_norm_wide + c.qk_norm_bare > 1)
    wrong(c.qk_norm_bare ? "qk_norm_bare" : "qk_norm_wide", "choose one",
          fmt::format("qk_norm is {}, qk_norm_wide {} and qk_norm_bare {}", c.qk_norm, c.qk_norm_wide, c.qk_norm_bare));
  if (c.rope_dim < 0 || c.rope_dim % 2 != 0 || c.rope_dim > std::max<i64>(c.head_dim, 0))
    wrong("rope_dim", fmt::format("use an even number up to {}", c.head_dim),
          fmt::format("rope_dim is {}", c.rope_dim));
  if (c.latent() && (c.kv_heads != c.heads || c.rope_dim < 2 || c.rope_dim >= c.head_dim || c.value_dim < 1 ||
                     c.qkv_bias || c.qk_norm || c.qk_norm_wide || c.qk_norm_bare))
    wrong("kv_rank", "use kv_heads = heads, 0 < rope_dim < head_dim, a value_dim, no qkv_bias and no norms of heads",
          fmt::format("kv_rank is {} with {} heads, {} key/value heads, rope_dim {}, head_dim {}, value_dim {}",
                      c.kv_rank, c.heads, c.kv_heads, c.rope_dim, c.head_dim, c.value_dim));
  if (!c.latent() && (c.q_rank != 0 || c.value_dim != 0))
    wrong("kv_rank", "say kv_rank, too, or leave the others out",
          fmt::format("q_rank is {} and value_dim {} without kv_rank", c.q_rank, c.value_dim));
  if (c.sinks && c.attention_dropout > 0)
    wrong("attention_dropout", "use 0", fmt::format("attention_dropout is {}, beside sinks", c.attention_dropout));
}

void check_longrope(const ModelConfig& c, std::vector<Fault>& faults) {
  const RopeScaling& r = c.rope_scaling;
  const i64 pairs = (c.rope_dim > 0 ? c.rope_dim : c.head_dim) / 2;
  for (const auto& [key, list] : {std::pair{"short_factor", &r.short_factor}, {"long_factor", &r.long_factor}}) {
    const bool positive = std::all_of(list->begin(), list->end(), [](double x) { return x > 0 && std::isfinite(x); });
    if (std::ssize(*list) != pairs || !positive)
      faults.push_back({"model.rope_scaling", fmt::format("{} has {} numbers", key, list->size()),
                        fmt::format("use {} positive ones: one per pair that is turned", pairs)});
  }
  if (r.original_context < 2)
    faults.push_back(
        {"model.rope_scaling", fmt::format("original_context is {}", r.original_context), "use at least 2"});
}

}  // namespace

void llama_check(const ModelConfig& c, std::vector<Fault>& faults) {
  const auto wrong = [&](std::string_view key, std::string hint, std::string what) {
    faults.push_back({fmt::format("model.{}", key), std::move(what), std::move(hint)});
  };
  if (c.head_dim % 2 != 0)
    wrong("head_dim", "use an even number: rotary positions turn pairs", fmt::format("head_dim is {}", c.head_dim));
  check_relatives(c, faults);
  const RopeScaling& r = c.rope_scaling;
  if (r.kind == RopeScaling::Kind::none) return;
  if (!(r.factor >= 1) || !std::isfinite(r.factor))
    wrong("rope_scaling", "use a factor of at least 1", fmt::format("factor is {}", r.factor));
  if (r.kind == RopeScaling::Kind::linear) return;
  if (r.kind == RopeScaling::Kind::yarn && !(r.beta_slow > 0 && r.beta_fast >= r.beta_slow && c.rope_base > 1))
    wrong("rope_scaling", "use 0 < beta_slow <= beta_fast and a rope_base above 1",
          fmt::format("beta_slow is {}, beta_fast {} and rope_base {}", r.beta_slow, r.beta_fast, c.rope_base));
  if (r.kind == RopeScaling::Kind::llama3 && (!(r.low_freq > 0) || !(r.high_freq > r.low_freq)))
    wrong("rope_scaling", "use 0 < low_freq < high_freq",
          fmt::format("low_freq is {} and high_freq {}", r.low_freq, r.high_freq));
  if (r.kind == RopeScaling::Kind::longrope) check_longrope(c, faults);
  if (r.original_context < 1)
    wrong("rope_scaling", "use at least 1", fmt::format("original_context is {}", r.original_context));
}

Tensor llama_hidden(Trace& t, const ModelConfig& c, Tensor ids, const FeedForward& feed_forward) {
  const Dim seq = ids.dim("seq");
  const LlamaShape s{.seq = seq,
                     .seq_r = seq.like("seq_r"),
                     .model = {"model", c.width},
                     .kv = {"kv", c.kv_heads},
                     .group = {"group", c.group()},
                     .head = {"head", c.head_dim},
                     .ff = {"ff", c.ff},
                     .since = document_starts(t, c, ids)};
  Tensor x = rename(embedded(t, c, ids), seq, s.seq_r);
  if (c.embedding_scale != 1) x = x * c.embedding_scale;
  x = boundary(t.dropout(x, c.embedding_dropout, "embedding_dropout"));
  for (int i = 0; i < c.layers; ++i) {
    const Scope in(t, "h", i);
    x = block(t, c, s, x, i, feed_forward);
  }
  return normalized(t, c, s, x, "norm_f");
}

std::vector<ParamSpec> llama_params(const ModelConfig& c, const FeedForwardParams& feed_forward) {
  const i64 w = c.width;
  std::vector<ParamSpec> p;
  vocab_params(c, "wte", "model.embed_tokens.weight", p);
  for (i64 i = 0; i < c.layers; ++i) {
    const std::string h = fmt::format("h.{}.", i), l = fmt::format("model.layers.{}.", i);
    const auto norm = [&](const char* ours, const char* theirs) {
      p.push_back({h + ours, {w}, fmt::format("{}{}_layernorm.weight", l, theirs)});
    };
    if (c.norms != Norms::after) norm("norm_1", "input");
    attention_params(c, h, l, p);
    if (c.norms != Norms::before) norm(c.norms == Norms::both ? "norm_1_after" : "norm_1", "post_attention");
    if (c.norms != Norms::after) norm("norm_2", c.norms == Norms::both ? "pre_feedforward" : "post_attention");
    feed_forward(c, i, h, l, p);
    if (c.norms != Norms::before) norm(c.norms == Norms::both ? "norm_2_after" : "norm_2", "post_feedforward");
  }
  p.push_back({"norm_f", {w}, "model.norm.weight"});
  if (!*c.tied) vocab_params(c, "head", "lm_head.weight", p);
  return p;
}

constinit const Family llama_family{
    .name = "llama",
    .summary = "rotary positions, RMSNorm, gated SiLU, grouped heads",
    .fill = llama_fill,
    .check = llama_check,
    .params =
        [](const ModelConfig& config) {
          return llama_params(config, [](const ModelConfig& c, i64, const std::string& h, const std::string& l,
                                         std::vector<ParamSpec>& p) { gated_params(c, c.ff, h, l + "mlp.", p); });
        },
    .hidden =
        [](Trace& trace, const ModelConfig& config, Tensor ids) {
          return llama_hidden(trace, config, ids,
                              [](Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, i64) {
                                return gated_layer(t, c, s, h, s.ff);
                              });
        },
    .stored_prefix = "model."};

}  // namespace stretto
