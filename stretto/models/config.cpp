#include "stretto/models/config.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/text.h"
#include "stretto/models/head.h"

namespace stretto {
namespace {

constexpr std::pair<std::string_view, Activation> activation_names[] = {{"gelu", Activation::gelu},
                                                                        {"gelu_erf", Activation::gelu_erf},
                                                                        {"relu", Activation::relu},
                                                                        {"silu", Activation::silu}};

}  // namespace

std::string_view name_of(Activation a) {
  for (const auto& [name, value] : activation_names)
    if (value == a) return name;
  return "?";
}

std::optional<Activation> activation_named(std::string_view name) {
  for (const auto& [known, value] : activation_names)
    if (known == name) return value;
  return {};
}

std::string ModelConfig::str() const {
  const std::string kv = kv_heads && kv_heads != heads ? fmt::format(" ({} key/value)", kv_heads) : "";
  const std::string sparse = experts ? fmt::format(", {} of {} experts", top_k, experts) : "";
  return fmt::format("{}, {} layer{}, width {}, {} head{}{}, ff {}{}, context {}, vocabulary {}", family, layers,
                     layers == 1 ? "" : "s", width, heads, heads == 1 ? "" : "s", kv, ff, sparse, context, vocab);
}

ModelConfig complete(ModelConfig c) {
  const Family& f = family_named(c.family);
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.head_dim == 0 && c.heads > 0 && c.width % c.heads == 0) c.head_dim = c.width / c.heads;
  f.fill(c);
  return c;
}

namespace {

// Options of relatives of Llama and of Mixtral that another family was given.
void check_options(const ModelConfig& c, std::vector<Fault>& faults) {
  const ModelConfig none;
  const auto only = [&](bool family, std::string_view name, bool changed, std::string_view key) {
    if (changed && !family)
      faults.push_back({fmt::format("model.{}", key), fmt::format("family '{}' has no such option", c.family),
                        fmt::format("leave it out, or use family '{}'", name)});
  };
  const bool mixtral = c.family == "mixtral", llama = mixtral || c.family == "llama";
#define STRETTO_LLAMA(key) only(llama, "llama", c.key != none.key, #key)
#define STRETTO_MIXTRAL(key) only(mixtral, "mixtral", c.key != none.key, #key)
  STRETTO_LLAMA(hf_type), STRETTO_LLAMA(qk_norm_wide), STRETTO_LLAMA(qk_norm_bare), STRETTO_LLAMA(norms);
  STRETTO_LLAMA(unit_gain), STRETTO_LLAMA(chunk), STRETTO_LLAMA(temperature_floor), STRETTO_LLAMA(temperature_scale);
  STRETTO_LLAMA(pattern), STRETTO_LLAMA(window), STRETTO_LLAMA(local_rope_base), STRETTO_LLAMA(rope_dim);
  STRETTO_LLAMA(rope_interleaved), STRETTO_LLAMA(sinks), STRETTO_LLAMA(attention_scale);
  STRETTO_LLAMA(attention_softcap), STRETTO_LLAMA(logit_softcap), STRETTO_LLAMA(embedding_scale);
  STRETTO_LLAMA(residual_scale), STRETTO_LLAMA(logit_scale), STRETTO_LLAMA(q_rank), STRETTO_LLAMA(kv_rank);
  STRETTO_LLAMA(value_dim);
  STRETTO_MIXTRAL(sparse), STRETTO_MIXTRAL(expert_ff), STRETTO_MIXTRAL(shared_ff), STRETTO_MIXTRAL(shared_gate);
  STRETTO_MIXTRAL(score), STRETTO_MIXTRAL(select_bias), STRETTO_MIXTRAL(balance_rate);
  STRETTO_MIXTRAL(groups), STRETTO_MIXTRAL(top_groups);
  STRETTO_MIXTRAL(normalize), STRETTO_MIXTRAL(route_scale), STRETTO_MIXTRAL(router_bias);
  STRETTO_MIXTRAL(expert_bias), STRETTO_MIXTRAL(expert_clamp), STRETTO_MIXTRAL(route_on_input);
#undef STRETTO_LLAMA
#undef STRETTO_MIXTRAL
  const auto at_most = [&](std::string_view key, i64 v, i64 most) {
    if (v < 0 || v > most)
      faults.push_back({fmt::format("model.{}", key), fmt::format("{} is {}", key, v),
                        fmt::format("use a number from 0 to {}", most)});
  };
  at_most("window", c.window, ModelConfig::most_context);
  at_most("chunk", c.chunk, ModelConfig::most_context);
  at_most("temperature_floor", c.temperature_floor, ModelConfig::most_context);
  at_most("q_rank", c.q_rank, ModelConfig::most_width);
  at_most("kv_rank", c.kv_rank, ModelConfig::most_width);
  at_most("value_dim", c.value_dim, ModelConfig::most_heads);
  at_most("expert_ff", c.expert_ff, ModelConfig::most_ff);
  at_most("shared_ff", c.shared_ff, ModelConfig::most_ff);
  const auto finite = [&](std::string_view key, double v, bool zero) {
    if (!(zero ? v >= 0 : v > 0) || !std::isfinite(v))
      faults.push_back({fmt::format("model.{}", key), fmt::format("{} is {}", key, v),
                        zero ? "use 0 or more" : "use a positive number"});
  };
  finite("local_rope_base", c.local_rope_base, true);
  finite("temperature_scale", c.temperature_scale, true);
  finite("attention_scale", c.attention_scale, true);
  finite("attention_softcap", c.attention_softcap, true);
  finite("logit_softcap", c.logit_softcap, true);
  finite("embedding_scale", c.embedding_scale, false);
  finite("residual_scale", c.residual_scale, false);
  finite("logit_scale", c.logit_scale, false);
  finite("route_scale", c.route_scale, false);
}

}  // namespace

std::vector<Fault> validate(const ModelConfig& c) {
  std::vector<Fault> faults;
  const auto wrong = [&](std::string_view key, std::string hint, std::string what) {
    faults.push_back({fmt::format("model.{}", key), std::move(what), std::move(hint)});
  };
  const auto range = [&](std::string_view key, i64 v, i64 most) {
    const bool right = v >= 1 && v <= most;
    if (!right) wrong(key, fmt::format("use a number from 1 to {}", most), fmt::format("{} is {}", key, v));
    return right;
  };
  range("layers", c.layers, ModelConfig::most_layers);
  range("context", c.context, ModelConfig::most_context);
  const bool vocab = range("vocab", c.vocab, ModelConfig::most_vocab);
  const bool padded = range("pad_vocab", c.pad_vocab, ModelConfig::most_heads);
  const bool parts = range("head_parts", c.head_parts, ModelConfig::most_head_parts);
  if (vocab && padded && parts && c.head_parts > most_head_parts(c))
    wrong("head_parts", fmt::format("use at most {}", most_head_parts(c)),
          fmt::format("head_parts is {}, and of a vocabulary of {} (pad_vocab is {}) some would be empty", c.head_parts,
                      c.vocab, c.pad_vocab));
  const bool width = range("width", c.width, ModelConfig::most_width),
             heads = range("heads", c.heads, ModelConfig::most_heads);
  if (width) range("ff", c.ff, ModelConfig::most_ff);  // else it may follow from a wrong width
  if (width && heads && c.head_dim == 0)
    wrong("heads",
          fmt::format("use {} heads, or width {}", divisors_near(c.width, c.heads),
                      (c.width + c.heads - 1) / c.heads * c.heads),
          fmt::format("{} heads do not divide width {}", c.heads, c.width));
  else if (width && heads)
    range("head_dim", c.head_dim, ModelConfig::most_heads);
  if (heads && range("kv_heads", c.kv_heads, ModelConfig::most_heads) && c.heads % c.kv_heads != 0)
    wrong("kv_heads", fmt::format("use {}", divisors_near(c.heads, c.kv_heads)),
          fmt::format("{} key/value heads do not divide {} heads", c.kv_heads, c.heads));
  const auto rate = [&](std::string_view key, double v) {
    if (!(v >= 0 && v < 1)) wrong(key, "use a rate from 0 up to, not including, 1", fmt::format("{} is {}", key, v));
  };
  rate("dropout", c.dropout);
  rate("embedding_dropout", c.embedding_dropout);
  rate("attention_dropout", c.attention_dropout);
  const auto positive = [&](std::string_view key, double v) {
    if (!(v > 0) || !std::isfinite(v)) wrong(key, "use a positive number", fmt::format("{} is {}", key, v));
  };
  positive("norm_eps", c.norm_eps);
  positive("init_std", c.init_std);
  positive("rope_base", c.rope_base);
  const auto of_experts = [&](std::string_view key, auto v) {
    if (v == 0 || c.family == "mixtral") return;
    wrong(key, "leave it out, or use family 'mixtral'",
          fmt::format("{} is {}, and family '{}' has no experts", key, v, c.family));
  };
  of_experts("experts", c.experts);
  of_experts("capacity", c.capacity);
  of_experts("balance", c.balance);
  of_experts("router_z", c.router_z);
  if (c.top_k != ModelConfig().top_k) of_experts("top_k", c.top_k);
  of_experts("balance_pooled", c.balance_pooled);
  check_options(c, faults);
  family_named(c.family).check(c, faults);
  return faults;
}

ModelConfig checked(const ModelConfig& config) {
  ModelConfig c = complete(config);
  refuse(validate(c));
  return c;
}

i64 parameter_count(const ModelConfig& config) {
  const ModelConfig c = checked(config);
  i64 n = 0;
  for (const ParamSpec& p : family_named(c.family).params(c)) n += p.elements();
  return n;
}

}  // namespace stretto
