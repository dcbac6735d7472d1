// The keys of every section, each in one line that serves both reading and writing:
//
//   keys_of(train, [&](std::string_view key, auto& value, const auto&... limits) { ... });
//
// `limits` is nothing, a Range, or the Choices a value is one of.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/config/run.h"
#include "stretto/formats/fields.h"

namespace stretto {

template <class T>
struct Choices : std::vector<std::pair<std::string_view, T>> {
  using std::vector<std::pair<std::string_view, T>>::vector;
};
inline Choices<std::string> names(std::initializer_list<std::string_view> all) {
  Choices<std::string> c;
  for (const std::string_view name : all) c.emplace_back(name, name);
  return c;
}

constexpr double largest_factor = 1e30;  // of numbers that training multiplies with: finite in f32, too

// Sizes have their limits in validate(ModelConfig).
template <class Visit>
void keys_of(RopeScaling& s, Visit&& visit) {
  using Kind = RopeScaling::Kind;
  visit("kind", s.kind, Choices<Kind>{{"none", Kind::none}, {"linear", Kind::linear}, {"llama3", Kind::llama3}});
  if (s.kind == Kind::none) return;
  visit("factor", s.factor, above(0));
  if (s.kind == Kind::linear) return;
  visit("low_freq", s.low_freq, above(0));
  visit("high_freq", s.high_freq, above(0));
  visit("original_context", s.original_context, at_least(1));
}

template <class Visit>
void keys_of(ModelConfig& c, Visit&& visit) {
  visit("family", c.family);
  visit("layers", c.layers);
  visit("width", c.width);
  visit("heads", c.heads);
  visit("kv_heads", c.kv_heads);
  visit("head_dim", c.head_dim);
  visit("ff", c.ff);
  visit("context", c.context);
  visit("vocab", c.vocab);
  visit("pad_vocab", c.pad_vocab);
  visit("tied", c.tied);
  visit("activation", c.activation,
        Choices<std::optional<Activation>>{{"gelu", Activation::gelu},
                                           {"gelu_erf", Activation::gelu_erf},
                                           {"relu", Activation::relu},
                                           {"silu", Activation::silu}});
  visit("dropout", c.dropout);
  visit("embedding_dropout", c.embedding_dropout);
  visit("attention_dropout", c.attention_dropout);
  visit("norm_eps", c.norm_eps);
  visit("init_std", c.init_std);
  visit("rope_base", c.rope_base);
  visit("qkv_bias", c.qkv_bias);
  visit("out_bias", c.out_bias);
  visit("mlp_bias", c.mlp_bias);
  visit("qk_norm", c.qk_norm);
  visit("experts", c.experts);
  visit("top_k", c.top_k);
  visit("capacity", c.capacity);
  visit("balance", c.balance);
  visit("balance_pooled", c.balance_pooled);
  visit("router_z", c.router_z);
}

// Besides these, `path` or `mixture`, and `validation`, which is a number or files.
template <class Visit>
void keys_of(DataSection& s, Visit&& visit) {
  visit("format", s.format,
        Choices<DataFormat>{{"auto", DataFormat::automatic},
                            {"text", DataFormat::text},
                            {"nanogpt", DataFormat::nanogpt},
                            {"llmc", DataFormat::llmc},
                            {"megatron", DataFormat::megatron}});
  visit("tokenizer", s.tokenizer);
  visit("documents", s.documents);
}

template <class Visit>
void keys_of(TrainSection& s, Visit&& visit) {
  visit("steps", s.steps, at_least(1));
  visit("batch", s.batch, between(1, 1 << 24));
  visit("microbatches", s.microbatches, between(1, 1 << 16));
  visit("seed", s.seed, at_least(0));
  visit("dtype", s.dtype, Choices<DType>{{"f32", f32}, {"f64", f64}});
  visit("clip", s.clip, at_least(0));
  visit("validate", s.validate, at_least(0));
  visit("validate_batches", s.validate_batches, at_least(1));
  visit("nonfinite", s.nonfinite,
        Choices<Nonfinite>{{"stop", Nonfinite::stop}, {"skip", Nonfinite::skip}, {"continue", Nonfinite::carry_on}});
  visit("exact", s.exact);
  visit("leaf", s.leaf, between(1, 1 << 24));
  visit("poll", s.poll, between(0, 1e9));
}

// Only the keys that the optimizer and the schedule know. `name` and `schedule`
// come first: they decide about the rest.
template <class Visit>
void keys_of(OptimizerSection& s, Visit&& visit) {
  visit("name", s.name, names({"adamw", "lion", "sgd"}));
  visit("schedule", s.schedule, names({"constant", "cosine", "linear", "wsd"}));
  visit("lr", s.lr, Range{.least = 0, .most = largest_factor, .open_least = true});
  visit("decay", s.decay, between(0, largest_factor));
  if (s.name != "sgd") visit("betas", s.betas, between(0, 1));
  if (s.name == "adamw") visit("eps", s.eps, Range{.least = 0, .most = largest_factor, .open_least = true});
  if (s.name == "sgd") visit("momentum", s.momentum, between(0, 1)), visit("nesterov", s.nesterov);
  visit("warmup", s.warmup, at_least(0));
  if (s.schedule != "constant") visit("floor", s.floor, between(0, 1));
  if (s.schedule == "wsd") visit("stable", s.stable, between(0, 1));
}

template <class Visit>
void keys_of(CheckpointSection& s, Visit&& visit) {
  visit("every", s.every, at_least(0));
  visit("keep", s.keep, between(0, 1 << 20));
  visit("export", s.export_to);
}

template <class Visit>
void keys_of(LogSection& s, Visit&& visit) {
  visit("name", s.name);
  visit("dir", s.dir);
  visit("every", s.every, at_least(1));
}

}  // namespace stretto
