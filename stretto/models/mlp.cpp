// The smallest family: GPT-2 without attention and positions. It guesses the next id from the present one alone.
#include <cmath>

#include "stretto/models/head.h"
#include "stretto/models/inner/layers.h"
#include "stretto/ops/add.h"
#include "stretto/ops/boundary.h"
#include "stretto/ops/layer_norm.h"
#include "stretto/ops/rename.h"

namespace stretto {
namespace {

void fill(ModelConfig& c) {
  if (c.ff == 0) c.ff = 4 * c.width_in_range();
  if (!c.tied) c.tied = true;
  if (!c.activation) c.activation = Activation::gelu;
}

void check(const ModelConfig& c, std::vector<Fault>& faults) {
  const auto of_attention = [&](std::string_view key, bool given) {
    if (!given) return;
    faults.push_back({fmt::format("model.{}", key), fmt::format("family 'mlp' has no attention, and no {}", key),
                      "leave it out, or use family 'llama'"});
  };
  of_attention("rope_base", c.rope_base != ModelConfig().rope_base);
  of_attention("rope_scaling", c.rope_scaling.kind != RopeScaling::Kind::none);
  of_attention("qk_norm", c.qk_norm);
  of_attention("attention_dropout", c.attention_dropout > 0);
}

Tensor norm(Trace& t, const ModelConfig& c, Tensor x, const Dim& model, std::string_view name) {
  const Scope in(t, name);
  return layer_norm(x, t.gain("gain", model), t.bias("bias", model), model, c.norm_eps);
}

Tensor hidden(Trace& t, const ModelConfig& c, Tensor ids) {
  const Dim seq = ids.dim("seq"), seq_r = seq.like("seq_r");
  const Dim model{"model", c.width}, ff{"ff", c.ff};
  const Init inner = normal(c.init_std), residual = normal(c.init_std / std::sqrt(c.layers));
  Tensor x = rename(embedded(t, c, ids), seq, seq_r);
  x = boundary(t.dropout(x, c.embedding_dropout, "embedding_dropout"));
  for (int i = 0; i < c.layers; ++i) {
    const Scope in(t, "h", i);
    const Tensor h = rename(norm(t, c, x, model, "ln"), seq_r, seq);
    const Tensor u = activate(linear(t, c, h, "up", model, ff, inner) + t.bias("up.bias", ff), *c.activation);
    const Tensor d = linear(t, c, u, "down", ff, model, residual);
    x = boundary(x + t.dropout(rename(d, seq, seq_r) + t.bias("down.bias", model), c.dropout));
  }
  return norm(t, c, x, model, "ln_f");
}

std::vector<ParamSpec> params(const ModelConfig& c) {
  const i64 w = c.width, f = c.ff;
  std::vector<ParamSpec> p;
  vocab_params(c, "wte", "", p);
  for (i64 i = 0; i < c.layers; ++i) {
    const std::string h = fmt::format("h.{}.", i);
    p.push_back({h + "ln.gain", {w}});
    p.push_back({h + "ln.bias", {w}});
    p.push_back({h + "up", {w, f}, "", 1});
    p.push_back({h + "up.bias", {f}});
    p.push_back({h + "down", {f, w}, "", 1});
    p.push_back({h + "down.bias", {w}});
  }
  p.push_back({"ln_f.gain", {w}});
  p.push_back({"ln_f.bias", {w}});
  if (!*c.tied) vocab_params(c, "head", "", p);
  return p;
}

}  // namespace

constinit const Family mlp_family{.name = "mlp",
                                  .summary = "no attention: sees one token at a time",
                                  .fill = fill,
                                  .check = check,
                                  .params = params,
                                  .hidden = hidden,
                                  .attends = false};

}  // namespace stretto
