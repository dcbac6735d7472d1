#include "stretto/models/config.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/text.h"
#include "stretto/models/family.h"

namespace stretto {
namespace {

constexpr std::pair<std::string_view, Activation> kActivations[] = {{"gelu", Activation::gelu},
                                                                    {"gelu_erf", Activation::gelu_erf},
                                                                    {"relu", Activation::relu},
                                                                    {"silu", Activation::silu}};

}  // namespace

std::string_view name_of(Activation a) {
  for (const auto& [name, value] : kActivations)
    if (value == a) return name;
  return "?";
}

std::optional<Activation> activation_named(std::string_view name) {
  for (const auto& [known, value] : kActivations)
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
  range("layers", c.layers, ModelConfig::kMostLayers);
  range("context", c.context, ModelConfig::kMostContext);
  range("vocab", c.vocab, ModelConfig::kMostVocab);
  range("pad_vocab", c.pad_vocab, ModelConfig::kMostHeads);
  const bool width = range("width", c.width, ModelConfig::kMostWidth),
             heads = range("heads", c.heads, ModelConfig::kMostHeads);
  if (width) range("ff", c.ff, ModelConfig::kMostFf);  // else it may follow from a wrong width
  if (width && heads && c.head_dim == 0)
    wrong("heads",
          fmt::format("use {} heads, or width {}", divisors_near(c.width, c.heads),
                      (c.width + c.heads - 1) / c.heads * c.heads),
          fmt::format("{} heads do not divide width {}", c.heads, c.width));
  else if (width && heads)
    range("head_dim", c.head_dim, ModelConfig::kMostHeads);
  if (heads && range("kv_heads", c.kv_heads, ModelConfig::kMostHeads) && c.heads % c.kv_heads != 0)
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
