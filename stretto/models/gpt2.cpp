// GPT-2: learned positions, LayerNorm before each half layer, biases everywhere.
#include <cmath>

#include "stretto/models/head.h"
#include "stretto/models/inner/layers.h"
#include "stretto/ops/add.h"
#include "stretto/ops/boundary.h"
#include "stretto/ops/embedding.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/layer_norm.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/slice.h"
#include "stretto/ops/stack.h"
#include "stretto/ops/sub.h"

namespace stretto {
namespace {

void fill(ModelConfig& c) {
  if (c.ff == 0) c.ff = 4 * c.width_in_range();
  if (!c.tied) c.tied = true;
  if (!c.activation) c.activation = Activation::gelu;
}

void check(const ModelConfig& c, std::vector<Fault>& faults) {
  const auto only_llama = [&](std::string_view key, std::string what) {
    faults.push_back({fmt::format("model.{}", key), std::move(what), "leave it out, or use family 'llama'"});
  };
  if (c.kv_heads != c.heads)
    only_llama("kv_heads",
               fmt::format("gpt2 has as many key/value heads as heads: {} and not {}", c.heads, c.kv_heads));
  if (c.head_dim != 0 && c.heads > 0 && (c.width % c.heads != 0 || c.head_dim != c.width / c.heads))
    only_llama("head_dim",
               fmt::format("gpt2's heads fill its width: {} heads of {} are not {}", c.heads, c.head_dim, c.width));
  if (c.qk_norm) only_llama("qk_norm", "gpt2 does not normalise queries and keys");
  if (c.rope_scaling.kind != RopeScaling::Kind::none) only_llama("rope_scaling", "gpt2 has no rotary positions");
  if (c.rope_base != ModelConfig().rope_base)
    only_llama("rope_base", fmt::format("rope_base is {}, and gpt2 has no rotary positions", c.rope_base));
}

struct Shape {
  Dim seq, seq_r, model, heads, head, ff;
  Tensor since;  // of documents; empty: attention sees everything before it
};

Tensor normalized(Trace& t, const ModelConfig& c, const Shape& s, Tensor x) {
  return layer_norm(x, t.gain("gain", s.model), t.bias("bias", s.model), s.model, c.norm_eps);
}
Tensor norm(Trace& t, const ModelConfig& c, const Shape& s, Tensor x, std::string_view name) {
  const Scope in(t, name);
  return rename(normalized(t, c, s, x), s.seq_r, s.seq);
}

Tensor block(Trace& t, const ModelConfig& c, const Shape& s, Tensor x) {
  const auto& [seq, seq_r, model, heads, head, ff, since] = s;
  const Dim three{"three", 3};
  const Init inner = normal(c.init_std);
  const Init residual = normal(c.init_std / std::sqrt(2.0 * c.layers));  // 2 · layers branches are added up
  Tensor h = norm(t, c, s, x, "ln_1");
  const Tensor z =
      linear(t, c, h, "qkv", model, {three, heads, head}, inner) + t.bias("qkv.bias", {three, heads, head});
  const auto [q, k, v] = unstack<3>(z, three);
  const Tensor a = attend(t, q, k, v, {.seq = seq, .head = head, .dropout = c.attention_dropout, .since = since});
  const Tensor o = linear(t, c, a, "o", {heads, head}, model, residual);
  x = boundary(x + t.dropout(rename(o, seq, seq_r) + t.bias("o.bias", model), c.dropout));
  h = norm(t, c, s, x, "ln_2");
  const Tensor u = activate(linear(t, c, h, "up", model, ff, inner) + t.bias("up.bias", ff), *c.activation);
  const Tensor d = linear(t, c, u, "down", ff, model, residual);
  return boundary(x + t.dropout(rename(d, seq, seq_r) + t.bias("down.bias", model), c.dropout));
}

Tensor positions(Trace& t, const ModelConfig& c, const Shape& s) {
  const Dim position{"position", c.context};
  if (s.seq.size > c.context)
    throw Error("gpt2", "a sequence has {} ids and the model {} positions", s.seq.size, c.context)
        .hint("use sequences of at most {} ids, or a model with a longer context", c.context);
  const Tensor wpe = t.param("wpe", {position, s.model}, {.init = normal(c.init_std)});
  if (t.decoding()) return rename(embedding(wpe, t.positions(s.seq), position), s.seq, s.seq_r);
  if (s.since)  // they begin again with every document
    return rename(embedding(wpe, iota(t.builder, s.seq) - s.since, position), s.seq, s.seq_r);
  if (s.seq.size == c.context) return rename(wpe, position, s.seq_r);
  const Dim first = s.seq.whole("seq_p");  // a slice is taken from a whole dim and gives one
  return rename(slice(wpe, position, first), first, s.seq_r);
}

Tensor hidden(Trace& t, const ModelConfig& c, Tensor ids) {
  const Dim seq = ids.dim("seq");
  const Shape s{.seq = seq,
                .seq_r = seq.like("seq_r"),
                .model = {"model", c.width},
                .heads = {"heads", c.heads},
                .head = {"head", c.head_dim},
                .ff = {"ff", c.ff},
                .since = document_starts(t, c, ids)};
  Tensor x = rename(embedded(t, c, ids), seq, s.seq_r);
  x = x + positions(t, c, s);
  x = boundary(t.dropout(x, c.embedding_dropout, "embedding_dropout"));
  for (int i = 0; i < c.layers; ++i) {
    const Scope in(t, "h", i);
    x = block(t, c, s, x);
  }
  const Scope in(t, "ln_f");
  return normalized(t, c, s, x);
}

std::vector<ParamSpec> params(const ModelConfig& c) {
  const i64 w = c.width, n = c.heads, d = c.head_dim, f = c.ff;
  const std::string top = "transformer.";
  std::vector<ParamSpec> p;
  vocab_params(c, "wte", top + "wte.weight", p);
  p.push_back({"wpe", {c.context, w}, top + "wpe.weight", 1});
  const auto norm = [&](const std::string& name) {
    p.push_back({name + ".gain", {w}, top + name + ".weight"});
    p.push_back({name + ".bias", {w}, top + name + ".bias"});
  };
  for (i64 i = 0; i < c.layers; ++i) {
    const std::string h = fmt::format("h.{}.", i);
    // Matrices are stored as [in, out].
    norm(h + "ln_1");
    p.push_back({h + "qkv", {w, 3, n, d}, top + h + "attn.c_attn.weight", 1});
    p.push_back({h + "qkv.bias", {3, n, d}, top + h + "attn.c_attn.bias"});
    p.push_back({h + "o", {n, d, w}, top + h + "attn.c_proj.weight", 2});
    p.push_back({h + "o.bias", {w}, top + h + "attn.c_proj.bias"});
    norm(h + "ln_2");
    p.push_back({h + "up", {w, f}, top + h + "mlp.c_fc.weight", 1});
    p.push_back({h + "up.bias", {f}, top + h + "mlp.c_fc.bias"});
    p.push_back({h + "down", {f, w}, top + h + "mlp.c_proj.weight", 1});
    p.push_back({h + "down.bias", {w}, top + h + "mlp.c_proj.bias"});
  }
  norm("ln_f");
  if (!*c.tied) vocab_params(c, "head", "lm_head.weight", p);
  return p;
}

}  // namespace

constinit const Family gpt2_family{.name = "gpt2",
                                   .summary = "learned positions, LayerNorm, GELU, biases",
                                   .fill = fill,
                                   .check = check,
                                   .params = params,
                                   .hidden = hidden,
                                   .stored_prefix = "transformer."};

}  // namespace stretto
