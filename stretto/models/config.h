// A model's shape as plain data. What is left open (0, none) is filled in from the family's habits:
//
//   ModelConfig config{.family = "llama", .layers = 8, .width = 512, .heads = 8, .kv_heads = 2};
//   Trainer trainer(compile(make_model(config, 16), adamw()));
//
//   ModelConfig small = preset("gpt2");    // 124M
#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/id.h"

namespace stretto {

enum class Activation : std::uint8_t { gelu, gelu_erf, relu, silu };  // gelu: its tanh form
std::string_view name_of(Activation);
std::optional<Activation> activation_named(std::string_view);

// How rotary frequencies are stretched for contexts longer than the one trained on.
struct RopeScaling {
  enum class Kind : std::uint8_t { none, linear, llama3, yarn, longrope } kind = Kind::none;
  double factor = 1;
  double low_freq = 1, high_freq = 4;    // llama3: wave lengths above original_context / low_freq are stretched
  i64 original_context = 8192;           // ... below original_context / high_freq are not
  double beta_fast = 32, beta_slow = 1;  // yarn: pairs with more turns than beta_fast in the original context stay
  // Queries and keys become so much longer; 0: yarn 0.1 ln(factor) + 1, longrope sqrt(1 + ln(factor) / ln(original))
  double attention_factor = 0;
  bool truncate = true;       // yarn: both ends are whole pairs
  double mscale_all_dim = 0;  // yarn: scores grow by (0.1 mscale_all_dim ln(factor) + 1)^2, too
  // longrope: every pair turns so much slower, in sequences up to original_context and in longer ones
  std::vector<double> short_factor = {}, long_factor = {};
  bool operator==(const RopeScaling&) const = default;
};

// Where a half layer is normalised: what it reads, what it adds to the residual stream, or both.
enum class Norms : std::uint8_t { before, after, both };
// What a router makes of its products: probabilities of all experts, or of each on its own.
enum class Score : std::uint8_t { softmax, sigmoid };

// Low-rank adapters: a weight W gets x A B alpha / rank added to x W.
struct Lora {
  i64 rank = 8;
  double alpha = 16;
  double dropout = 0;                    // of x, before A
  std::vector<std::string> params = {};  // weights that have one, by name: lora_params() of lora.h
  static constexpr i64 most_rank = 1 << 16;
  double scale() const { return alpha / rank; }
  bool operator==(const Lora&) const = default;
};

struct ModelConfig {
  std::string family = "gpt2";
  std::string hf_type = {};  // the Hugging Face model type it came from, which is written again; "": the plainest
  i64 layers = 4, width = 128, heads = 4;
  i64 kv_heads = 0;  // 0: as many as heads
  i64 head_dim = 0;  // 0: width / heads
  i64 ff = 0;        // 0: 4 x width; llama: 8/3 x width, rounded up to a multiple of 32
  i64 context = 128, vocab = 256;
  i64 pad_vocab = 1;                          // the stored vocabulary is a multiple of this; files and loss see `vocab`
  i64 head_parts = 1;                         // pieces of the head, each with a slice of the vocabulary (models/head.h)
  std::optional<bool> tied = {};              // the head is the embedding; none: gpt2 and mlp yes, llama no
  std::optional<Activation> activation = {};  // none: gpt2 and mlp gelu, llama silu
  double dropout = 0, embedding_dropout = 0, attention_dropout = 0;
  double norm_eps = 1e-5, init_std = 0.02;
  double rope_base = 10000;
  RopeScaling rope_scaling = {};
  bool qkv_bias = false, out_bias = false, mlp_bias = false;  // llama and relatives; gpt2 and mlp have all biases
  bool gated = true;                                          // llama: the feed-forward part has a gate
  bool qk_norm = false;                                       // per-head RMSNorm of queries and keys
  // Llama's relatives.
  bool qk_norm_wide = false;    // RMSNorm of queries and keys over all heads together
  bool qk_norm_bare = false;    // RMSNorm per head without gains, after queries and keys are turned
  Norms norms = Norms::before;  // of half layers
  bool unit_gain = false;       // norms multiply with 1 + gain
  // Kinds of layers, over and over: f sees all before it, w a window, c its chunk, n all and has no positions; "": w, c
  // or f, by what is there.
  std::string pattern = {};
  i64 window = 0;  // keys that a query of a w layer sees
  i64 chunk = 0;   // c layers see tokens of their own chunk, of so many
  // Queries of n layers are scaled by 1 + temperature_scale ln(1 + (position + 1) / temperature_floor), where the
  // quotient is rounded down; 0: they are not.
  i64 temperature_floor = 0;
  double temperature_scale = 0.1;
  double local_rope_base = 0;                       // of w layers, without scaling; 0: as the others
  i64 rope_dim = 0;                                 // elements of a head that are turned; 0: all
  bool rope_interleaved = false;                    // pairs are neighbours
  bool sinks = false;                               // attention has one more score per head, without a value
  double attention_scale = 0;                       // of scores; 0: 1 / sqrt(head_dim)
  double attention_softcap = 0, logit_softcap = 0;  // c tanh(x / c); 0: none
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  i64 q_rank = 0, kv_rank = 0;  // queries, and keys and values, by way of so few numbers (MLA); 0: directly
  i64 value_dim = 0;            // width of a head's values; 0: head_dim
  i64 experts = 0, top_k = 2;   // mixtral
  std::string sparse = {};      // which layers have experts, over and over: e, or d for dense; "": all
  i64 expert_ff = 0;            // width of an expert; 0: ff
  i64 shared_ff = 0;            // width of an expert that all tokens have; 0: there is none
  bool shared_gate = false;     // ... times a gate
  Score score = Score::softmax;
  bool select_bias = false;        // a number per expert is added for the choice alone
  double balance_rate = 0.001;     // by which a step changes it towards even loads; 0: it stays as it is
  i64 groups = 1, top_groups = 1;  // experts come in groups, of which a token first chooses some
  bool normalize = true;           // weights of the chosen add up to one
  double route_scale = 1;          // of the weights
  bool route_on_input = false;     // weights are factors of what experts read, not of what they say
  bool router_bias = false, expert_bias = false;
  double expert_clamp = 0;  // gpt_oss: the experts' gates and their partners are bounded; 0: plain
  double capacity = 0;      // training: slots per expert and sequence over the even share; 0: nobody is dropped
  double balance = 0, router_z = 0;  // weights of the router's penalties
  bool balance_pooled = false;       // balance over all tokens and layers of a microbatch instead of per sequence
  bool documents = false;            // attention stays within documents, which one more input, `segments`, tells apart
  std::optional<Lora> lora = {};     // adapters beside weights

  // Far beyond any real model, and all products stay inside 64 bits. most_heads is also that of sizes like a head's.
  static constexpr i64 most_layers = 10'000, most_width = 1 << 20, most_heads = 1 << 16, most_ff = 1 << 23;
  static constexpr i64 most_context = 1 << 26, most_vocab = 1 << 26, most_head_parts = 256;
  i64 width_in_range() const { return std::clamp<i64>(width, 0, most_width); }  // before anybody has checked it
  i64 expert_width() const { return expert_ff ? expert_ff : ff; }
  bool latent() const { return kv_rank > 0; }
  char kind_of(i64 layer) const {
    return !pattern.empty() ? pattern[layer % pattern.size()] : window > 0 ? 'w' : chunk > 0 ? 'c' : 'f';
  }
  bool has_experts(i64 layer) const { return experts > 0 && (sparse.empty() || sparse[layer % sparse.size()] == 'e'); }
  i64 group() const { return kv_heads ? heads / kv_heads : 1; }  // heads that share one key/value head
  bool operator==(const ModelConfig&) const = default;
  std::string str() const;  // "llama, 8 layers, width 512, 8 heads (2 key/value), ff 1376, context 128, vocabulary 256"
};

// With every open field filled in. An unknown family is an Error that suggests the nearest.
ModelConfig complete(ModelConfig);
// All that is wrong with a completed config; Fault::where is the key, e.g. "model.heads".
std::vector<Fault> validate(const ModelConfig&);
ModelConfig checked(const ModelConfig&);  // completed, or an Error with all faults

i64 parameter_count(const ModelConfig&);  // padding not counted, a tied head counted once

struct Preset {
  std::string_view name, summary;
  ModelConfig config;
};
std::span<const Preset> presets();
const ModelConfig& preset(std::string_view name);  // unknown: Error with the nearest name

}  // namespace stretto
