#include "stretto/models/inner/latent.h"

#include "stretto/models/inner/layers.h"
#include "stretto/ops/broadcast.h"
#include "stretto/ops/concat.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/rms_norm.h"
#include "stretto/ops/slice.h"

namespace stretto {
namespace {

// A head is what is not turned, then what is.
struct HeadParts {
  Dim plain, turned;
};
HeadParts parts_of(const ModelConfig& c) {
  return {{"head_plain", c.head_dim - c.rope_dim}, {"head_turned", c.rope_dim}};
}

Tensor short_vector(Trace& t, const ModelConfig& c, const Dim& model, Tensor h, const std::string& name,
                    const Dim& rank) {
  const Tensor x = linear(t, c, h, name, model, rank, normal(c.init_std));
  return rms_norm(x, t.gain(name + "_norm", rank), rank, 1e-6);
}

Tensor with_heads(Trace& t, const ModelConfig& c, Tensor x, const std::string& name, const Dim& from, const Dims& to) {
  return linear(t, c, x, name, from, to, normal(c.init_std));
}

}  // namespace

QueriesKeysValues latent_projections(Trace& t, const ModelConfig& c, const LlamaShape& s, Tensor h, char kind) {
  const auto [plain, turned_part] = parts_of(c);
  const Dim q_rank{"q_rank", c.q_rank}, kv_rank{"kv_rank", c.kv_rank}, value{"value", c.value_dim};
  const Dims heads{s.kv, s.group, s.head};
  const Tensor q = c.q_rank ? with_heads(t, c, short_vector(t, c, s.model, h, "q_a", q_rank), "q", q_rank, heads)
                            : with_heads(t, c, h, "q", s.model, heads);
  const Tensor latent = short_vector(t, c, s.model, h, "kv_a", kv_rank);
  const Tensor shared = with_heads(t, c, h, "k_turned", s.model, {turned_part});
  const Tensor k = with_heads(t, c, latent, "k", kv_rank, {s.kv, plain});
  const Tensor v = with_heads(t, c, latent, "v", kv_rank, {s.kv, value});
  const auto turn = [&](Tensor x) { return turned(t, c, x, s.seq, turned_part, kind); };
  const Dim batch = h.dim(t.batch_name);
  const Tensor q_turned = turn(slice(q, s.head, turned_part, plain.size));
  const Tensor k_turned = broadcast(turn(shared), {batch, s.seq, s.kv, turned_part});
  return {concat({slice(q, s.head, plain), q_turned}, {plain, turned_part}, s.head),
          concat({k, k_turned}, {plain, turned_part}, s.head), v};
}

void latent_params(const ModelConfig& c, const std::string& h, const std::string& l, std::vector<ParamSpec>& p) {
  const i64 w = c.width, n = c.heads, d = c.head_dim, r = c.rope_dim, plain = d - r, v = c.value_dim;
  const std::string a = l + "self_attn.";
  if (c.q_rank) {
    p.push_back({h + "q_a", {w, c.q_rank}, a + "q_a_proj.weight", 1, true});
    p.push_back({h + "q_a_norm", {c.q_rank}, a + "q_a_layernorm.weight"});
    p.push_back({h + "q", {c.q_rank, n, 1, d}, a + "q_b_proj.weight", 1, true});
  } else {
    p.push_back({h + "q", {w, n, 1, d}, a + "q_proj.weight", 1, true});
  }
  const auto cut = [&](const char* ours, std::vector<i64> sizes, const char* theirs, ParamSpec::Cut place) {
    ParamSpec spec{h + ours, std::move(sizes), a + theirs, 1, true};
    spec.cut = place;
    p.push_back(std::move(spec));
  };
  const i64 both = c.kv_rank + r;
  cut("kv_a", {w, c.kv_rank}, "kv_a_proj_with_mqa.weight", {.block = c.kv_rank, .total = both});
  p.push_back({h + "kv_a_norm", {c.kv_rank}, a + "kv_a_layernorm.weight"});
  cut("k_turned", {w, r}, "kv_a_proj_with_mqa.weight", {.block = r, .offset = c.kv_rank, .total = both});
  const i64 each = plain + v, all = n * each;  // of a head first what keys need, then its values
  cut("k", {c.kv_rank, n, plain}, "kv_b_proj.weight", {.block = plain, .stride = each, .total = all});
  cut("v", {c.kv_rank, n, v}, "kv_b_proj.weight", {.block = v, .stride = each, .offset = plain, .total = all});
}

}  // namespace stretto
