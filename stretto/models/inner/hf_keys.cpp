#include "stretto/models/inner/hf_keys.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/text.h"

namespace stretto::hf {
namespace {

// The first name of a function is the one that is written.
constexpr std::pair<std::string_view, Activation> hf_activations[] = {
    {"gelu_new", Activation::gelu},
    {"gelu_pytorch_tanh", Activation::gelu},
    {"gelu_fast", Activation::gelu},
    {"gelu", Activation::gelu_erf},
    {"gelu_python", Activation::gelu_erf},
    {"relu", Activation::relu},
    {"silu", Activation::silu},
    {"swish", Activation::silu},
};

}  // namespace

void read_activation(FieldReader& r, std::string_view key, ModelConfig& c) {
  std::string text;
  if (!r.read(key, text)) return;
  std::vector<std::string> known;
  for (const auto& [name, value] : hf_activations) {
    if (name == text) return void(c.activation = value);
    known.emplace_back(name);
  }
  r.fail_hint(key, "no such activation is supported", fmt::format("supported are {}", join(known, ", ")));
}

// A switch that only works in one position.
void must_be(FieldReader& r, std::string_view key, bool value) {
  bool there = value;
  if (r.read(key, there) && there != value)
    r.fail_hint(key, fmt::format("only {} is supported", value), "it would change the results");
}

void no_jitter(FieldReader& r) {
  double noise = 0;
  r.read("router_jitter_noise", noise, at_least(0));
  if (noise != 0) r.fail("router_jitter_noise", "noise of the router is not supported");
}

void read_rate(FieldReader& r, std::string_view key, double& to, double otherwise) {
  to = otherwise;
  r.read(key, to, between(0, 1));
}

void read_rope(FieldReader& r, ModelConfig& c, RopeHabits h) {
  r.read("rope_theta", c.rope_base, above(0));
  r.ignore({"rope_parameters", "rope_scaling"});
  // 5.x: one table with the base inside; 4.x: rope_theta, and a table only when there is scaling.
  const std::string_view key = r.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (r.has(key)) read_rope_table(r, key, c, h);
}

namespace {

// How long contexts were is said in the table or, by older files, beside it.
void read_longrope(FieldReader& r, FieldReader& rope, ModelConfig& c) {
  RopeScaling& s = c.rope_scaling;
  s.kind = RopeScaling::Kind::longrope;
  for (const char* k : {"short_factor", "long_factor"}) rope.need(k);
  rope.read("short_factor", s.short_factor, above(0));
  rope.read("long_factor", s.long_factor, above(0));
  s.original_context = c.context;
  r.read("original_max_position_embeddings", s.original_context, at_least(1));
  rope.read("original_max_position_embeddings", s.original_context, at_least(1));
  s.factor = std::max(1.0, double(c.context) / std::max<i64>(1, s.original_context));
  rope.read("factor", s.factor, at_least(1));
  rope.read("attention_factor", s.attention_factor, above(0));
}

}  // namespace

void read_rope_table(FieldReader& r, std::string_view key, ModelConfig& c, RopeHabits h) {
  FieldReader rope = r.section(key);
  rope.read("rope_theta", c.rope_base, above(0));
  std::string type = "default";
  rope.read("type", type);  // the name before 4.43
  rope.read("rope_type", type);
  double part = 1;
  rope.read("partial_rotary_factor", part, above_up_to(0, 1));
  if (part != 1 && !h.partial) rope.fail("partial_rotary_factor", "only whole heads can be turned");
  if (part != 1) c.rope_dim = i64((c.head_dim ? c.head_dim : c.heads > 0 ? c.width / c.heads : 0) * part);
  RopeScaling& s = c.rope_scaling;
  if (type == "default") {
    rope.ignore({"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"});
    return;
  }
  if (type == "linear") {
    s.kind = RopeScaling::Kind::linear;
    rope.ignore({"original_max_position_embeddings"});
  } else if (type == "llama3") {
    s.kind = RopeScaling::Kind::llama3;
    for (const char* k : {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) rope.need(k);
    rope.read("low_freq_factor", s.low_freq, above(0));
    rope.read("high_freq_factor", s.high_freq, above(0));
    rope.read("original_max_position_embeddings", s.original_context, at_least(1));
  } else if (type == "yarn") {
    s.kind = RopeScaling::Kind::yarn;
    rope.need("original_max_position_embeddings");
    rope.read("original_max_position_embeddings", s.original_context, at_least(1));
    rope.read("beta_fast", s.beta_fast, above(0));
    rope.read("beta_slow", s.beta_slow, above(0));
    rope.read("truncate", s.truncate);
    double mscale = 0, all = 0;
    rope.read("mscale", mscale, at_least(0));
    rope.read("mscale_all_dim", all, at_least(0));
    if (h.grows) s.mscale_all_dim = all;
    rope.read("attention_factor", s.attention_factor, above(0));
    double factor = 1;
    rope.read("factor", factor, at_least(1));
    const auto longer = [&](double m) { return factor > 1 ? 0.1 * m * std::log(factor) + 1 : 1; };
    if (s.attention_factor == 0 && mscale > 0 && all > 0) s.attention_factor = longer(mscale) / longer(all);
  } else if (type == "longrope" || type == "su") {  // its first name
    return read_longrope(r, rope, c);
  } else {
    rope.fail_hint(rope.has("rope_type") ? "rope_type" : "type", "no such rotary scaling is supported",
                   "supported are default, linear, llama3, yarn and longrope");
    for (const Member& m : *rope.field().table()) rope.raw(m.key);  // one fault is enough
    return;
  }
  rope.need("factor");
  rope.read("factor", s.factor, at_least(1));
}

std::string written(Activation a) {
  for (const auto& [name, value] : hf_activations)
    if (value == a) return std::string(name);
  STRETTO_ASSERT(false, "an activation without a name");
}

Field rope_config(const RopeScaling& s) {
  Field f{Field::Table{}};
  constexpr const char* rope_type_names[] = {"default", "linear", "llama3", "yarn", "longrope"};
  f.set("rope_type", rope_type_names[std::size_t(s.kind)]);
  if (s.kind != RopeScaling::Kind::none) f.set("factor", s.factor);
  if (s.kind == RopeScaling::Kind::llama3) {
    f.set("low_freq_factor", s.low_freq);
    f.set("high_freq_factor", s.high_freq);
    f.set("original_max_position_embeddings", s.original_context);
  }
  if (s.kind == RopeScaling::Kind::yarn) {
    f.set("original_max_position_embeddings", s.original_context);
    f.set("beta_fast", s.beta_fast);
    f.set("beta_slow", s.beta_slow);
    f.set("truncate", s.truncate);
    if (s.attention_factor > 0) f.set("attention_factor", s.attention_factor);
    if (s.mscale_all_dim > 0) f.set("mscale_all_dim", s.mscale_all_dim);
  }
  if (s.kind == RopeScaling::Kind::longrope) {
    f.set("original_max_position_embeddings", s.original_context);
    f.set("short_factor", Field::Array(s.short_factor.begin(), s.short_factor.end()));
    f.set("long_factor", Field::Array(s.long_factor.begin(), s.long_factor.end()));
    if (s.attention_factor > 0) f.set("attention_factor", s.attention_factor);
  }
  return f;
}

}  // namespace stretto::hf
