// Random configurations of a run over every key that changes its program: settings as on the command line. Number n is
// always the same one. Most are legal; some are refused, as a user's would be.
//
//   fmt::print("stretto verify {}\n", join(configuration(17, "examples"), " "));
#pragma once
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/schedule/builders.h"

namespace stretto {

using Settings = std::vector<std::string>;

class RandomConfiguration {
 public:
  RandomConfiguration(int number, const std::string& examples) : random_(static_cast<unsigned>(number)) {
    add("data.path", examples + "/data/tales.txt");
    cluster_ = examples + "/clusters/h100x8.toml";
    model();
    ranks();
    training();
    schedule();
    storage();
    finetuning();
    if (carries_segments_ && !exact_ && chance(25)) add("train.segments", one_of({"2", "2", "4", "[4,2,2]"}));
  }
  Settings settings() && { return std::move(settings_); }

 private:
  template <class T>
  void add(const std::string& key, const T& value) {
    settings_.push_back(fmt::format("--{}={}", key, value));
  }
  // With a probability in percent.
  bool chance(int percent) { return int(random_() % 100) < percent; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[random_() % all.size()];
  }
  template <class T>
  void maybe(int percent, const std::string& key, std::initializer_list<T> values) {
    if (chance(percent)) add(key, one_of(values));
  }
  void maybe(int percent, const std::string& key) { maybe(percent, key, {"true"}); }

  void model() {
    family_ = one_of({"gpt2", "llama", "llama", "mixtral", "mixtral", "mixtral"});
    layers_ = one_of({2, 3, 4});
    add("model.family", family_);
    add("model.layers", layers_);
    add("model.width", 16);
    latent_ = family_ != "gpt2" && chance(10);
    const int heads = latent_ ? 4 : one_of({4, 8});
    add("model.heads", heads);
    head_dim_ = 16 / heads;
    if (family_ != "gpt2" && !latent_ && chance(10)) add("model.head_dim", head_dim_ = 6);
    add("model.ff", one_of({16, 24}));
    add("model.context", 8);
    maybe(10, "model.vocab", {257, 300});
    maybe(20, "model.pad_vocab", {3, 8});
    head_parts_ = chance(25) ? one_of({2, 3}) : 1;
    add("model.head_parts", head_parts_);
    maybe(30, "model.tied", {"true", "false"});
    maybe(25, "model.dropout", {0.1});
    maybe(10, "model.embedding_dropout", {0.2});
    sinks_ = family_ != "gpt2" && chance(10);
    if (!sinks_) maybe(10, "model.attention_dropout", {0.2});
    maybe(15, "model.activation", {"gelu", "gelu_erf", "relu", "silu"});
    maybe(8, "model.norm_eps", {0.01});
    maybe(8, "model.init_std", {0.1});
    maybe(10, "data.documents");
    if (family_ != "gpt2") relatives_of_llama();
    if (family_ == "mixtral") experts();
  }

  void relatives_of_llama() {
    int turned = head_dim_;
    if (latent_) {
      add("model.kv_rank", 8), add("model.value_dim", 4), add("model.rope_dim", turned = 2);
      maybe(40, "model.q_rank", {8});
    } else {
      maybe(40, "model.kv_heads", {1, 2, 4});
      if (chance(15)) add("model.qkv_bias", "true"), key_bias_ = true;
      if (chance(30)) add("model." + one_of<std::string>({"qk_norm", "qk_norm_wide", "qk_norm_bare"}), "true");
      if (chance(10)) add("model.rope_dim", turned = 2);
    }
    maybe(8, "model.out_bias");
    if (family_ == "llama") maybe(10, "model.mlp_bias"), maybe(15, "model.gated", {"false"});
    maybe(15, "model.norms", {"after", "both"});
    maybe(10, "model.unit_gain");
    if (chance(20)) kinds_of_layers();
    if (chance(15)) longer_contexts(turned / 2);
    maybe(8, "model.rope_base", {100.0});
    for (const char* scale : {"attention_scale", "embedding_scale", "residual_scale", "logit_scale"})
      maybe(6, std::string("model.") + scale, {0.5, 2.0});
    if (sinks_) add("model.sinks", "true");
    maybe(10, "model.attention_softcap", {3.0});
    maybe(10, "model.logit_softcap", {5.0});
    maybe(10, "model.rope_interleaved");
  }

  // Where keys have no positions, a bias that all have changes nothing: its gradient is what rounding leaves.
  void kinds_of_layers() {
    const std::string pattern =
        key_bias_ ? one_of<std::string>({"wf", "wwf", "wcf"}) : one_of<std::string>({"wf", "wwf", "wn", "cn", "wcf"});
    const auto has = [&](char kind) { return pattern.find(kind) != std::string::npos; };
    add("model.pattern", pattern);
    if (has('w')) add("model.window", 3), maybe(40, "model.local_rope_base", {100.0});
    if (has('c')) add("model.chunk", 3);
    if (has('n') && chance(60)) add("model.temperature_floor", 2), maybe(50, "model.temperature_scale", {0.5});
  }

  // Of pairs that are turned.
  void longer_contexts(int pairs) {
    const auto set = [&](const std::string& key, const auto& value) { add("model.rope_scaling." + key, value); };
    const std::string kind = one_of<std::string>({"linear", "llama3", "yarn", "longrope"});
    set("kind", kind), set("factor", 4.0);
    if (kind == "linear") return;
    set("original_context", one_of({4, 16}));
    if (kind == "llama3" && chance(50)) set("low_freq", 0.5), set("high_freq", 2.0);
    if (kind == "yarn") {
      if (chance(50)) set("beta_fast", 8.0), set("beta_slow", 0.5);
      if (chance(30)) set("truncate", "false");
      if (chance(30)) set("mscale_all_dim", 1.0);
    }
    if (kind != "llama3" && chance(30)) set("attention_factor", 1.5);
    if (kind != "longrope") return;
    set("short_factor", fmt::format("[{}]", join(Settings(pairs, "1.5"), ",")));
    set("long_factor", fmt::format("[{}]", join(Settings(pairs, "3.5"), ",")));
  }

  void experts() {
    add("model.experts", experts_ = one_of({4, 8}));
    add("model.top_k", one_of({1, 2, 3}));
    maybe(25, "model.sparse", {"de", "ed", "eed"});
    maybe(30, "model.expert_ff", {8, 12});
    if (chance(25)) add("model.shared_ff", 8), maybe(50, "model.shared_gate");
    const bool sigmoid = chance(25);
    if (sigmoid) add("model.score", "sigmoid");
    if (chance(25)) add("model.select_bias", "true"), add("model.balance_rate", 0.01);
    if (chance(10)) add("model.groups", 2), add("model.top_groups", one_of({1, 2}));
    maybe(20, "model.normalize", {"false"});
    maybe(15, "model.route_scale", {2.5});
    maybe(10, "model.route_on_input");
    maybe(15, "model.router_bias");
    maybe(15, "model.expert_bias");
    maybe(10, "model.expert_clamp", {7.0});
    maybe(15, "model.capacity", {0.75, 1.25});
    if (!sigmoid && chance(40)) add("model.balance", 0.05), maybe(30, "model.balance_pooled");
    maybe(25, "model.router_z", {0.02});
  }

  // At most eight. Exact training knows the axes of the batch and of products only.
  void ranks() {
    exact_ = chance(7);
    pipe_ = one_of({1, 1, 2, 2, 3, 4});
    int ranks = pipe_;
    const std::vector<std::string> axes{"data",   "data",    "tensor", "tensor",  "expert",
                                        "expert", "context", "depth",  "replicas"};
    std::map<std::string, int> sizes;
    for (int tries = one_of({0, 1, 2, 2, 3}); tries > 0; --tries) {
      const std::string& axis = axes[random_() % (exact_ ? 4 : axes.size())];
      if (axis == "expert" && family_ != "mixtral") continue;
      const int size = one_of({2, 2, 2, 4});
      if (sizes.contains(axis) || ranks * size > 8) continue;
      ranks *= size, sizes[axis] = size;
      if (axis != "tensor" && axis != "context") rows_ *= size;
    }
    if (pipe_ > 1) add("parallel.pipe", pipe_);
    for (const auto& [axis, size] : sizes) add("parallel." + axis, size);
    data_ = sizes["data"], depth_ = sizes["depth"], expert_ = sizes["expert"];
    if (sizes["tensor"] > 0 && !exact_) maybe(60, "parallel.sequence");
    if (sizes["context"] > 0) maybe(50, "parallel.exchange");
    if (ranks <= 4 && chance(12))
      add("parallel.mesh.x", 2), add(std::string("parallel.layout.") + one_of({"model", "model", "vocab"}), "x");
  }

  void training() {
    microbatches_ = exact_ ? one_of({1, 2, 4, 8}) : one_of({1, 2, 3, 4, 4, 6, 8});
    add("train.microbatches", microbatches_);
    const int leaf = exact_ ? one_of({1, 2}) : 1;
    add("train.batch", microbatches_ * std::max(rows_, 1) * leaf * one_of({1, 1, 2}));
    if (leaf > 1) add("train.leaf", leaf);
    add("train.seed", random_() % 1000);
    dtype_ = one_of({"f64", "f64", "f64", "f32", "f32", "bf16"});
    add("train.dtype", dtype_);
    maybe(60, "train.clip", {0.0, 0.05, 0.5});
    if (chance(10)) add("train.clip_late", "true"), add("train.nonfinite", "skip");
    if (exact_) add("train.exact", "true");
    maybe(6, "train.ema", {0.9});
    if (dtype_ == "bf16") maybe(20, "train.precision.wte", {"f32"});
    const std::string optimizer = one_of({"adamw", "adamw", "adamw", "lion", "sgd"});
    add("optimizer.name", optimizer);
    add("optimizer.lr", 0.003);
    if (optimizer == "sgd" && chance(50)) add("optimizer.momentum", 0.9), maybe(50, "optimizer.nesterov");
    if (optimizer != "sgd") maybe(15, "optimizer.betas", {"[0.8,0.9]"});
    if (optimizer == "adamw") maybe(15, "optimizer.eps", {1e-3});
    maybe(25, "optimizer.decay", {0.0, 0.3});
    if (dtype_ != "f64") maybe(20, "optimizer.state", {"bf16"});
    if (chance(40)) learning_rate();
  }

  void learning_rate() {
    const std::string course = one_of<std::string>({"constant", "cosine", "linear", "wsd"});
    add("optimizer.schedule", course), add("train.steps", 3);
    maybe(50, "optimizer.warmup", {1, 2});
    if (course != "constant") maybe(50, "optimizer.floor", {0.2});
    if (course == "wsd") maybe(50, "optimizer.stable", {0.4});
  }

  void schedule() {
    const std::span<const BuilderEntry> all = schedule_builders();
    BuilderEntry s = all[random_() % all.size()];
    if (s.name == "seq-1f1b" && chance(90)) s = all.front();  // it asks for segments
    carries_segments_ = s.segments;
    int chunks = s.default_chunks();
    if (pipe_ > 1 || chance(10)) {
      add("parallel.schedule", s.name);
      if (chunks > 1 && chance(15)) add("parallel.chunks", chunks = 3);
    }
    const int stages = pipe_ * chunks;
    if (pipe_ > 1 && chance(15)) add("parallel.stages", lengths(2 * layers_ + 1 + head_parts_, stages));
    if (chance(40)) {
      const auto mode = [&] { return one_of({"none", "full", "layer", "selective"}); };
      Settings modes;
      for (int i = 0; i < stages; ++i) modes.push_back(fmt::format("\"{}\"", mode()));
      add("parallel.recompute", chance(70) ? mode() : fmt::format("[{}]", join(modes, ",")));
    }
    maybe(40, "parallel.overlap", {"none", "calls", "chunks"});
    maybe(15, "parallel.threads", {1, 2, 3});
    if (chance(15))
      add("parallel.device", "async");
    else if (chance(8))
      add("parallel.link.latency", 1e-5), add("parallel.link.bandwidth", 1e9);
    else
      maybe(6, "parallel.cluster", {cluster_});
  }

  // So many pieces as stages of one or more.
  std::string lengths(int pieces, int stages) {
    std::vector<int> all(std::max(stages, 1), 1);
    for (int left = pieces - stages; left > 0; --left) ++all[random_() % all.size()];
    Settings words;
    for (const int n : all) words.push_back(std::to_string(n));
    return fmt::format("[{}]", join(words, ","));
  }

  void storage() {
    if (data_ > 0) add("parallel.zero", zero_ = exact_ ? 0 : one_of({0, 1, 2, 3}));
    if (zero_ == 3 || depth_ > 0) maybe(40, "parallel.reshard", {"step", "microbatch"});
    maybe(15, "parallel.regather");
    if (dtype_ != "f64" && zero_ < 2) maybe(10, "parallel.reduce", {"bf16"});
    if (expert_ == 0) return;
    maybe(70, "parallel.expert_rows", {"gather", "exchange", "exchange"});
    maybe(70, "parallel.expert_room", {1.0, 1.25, 3.0});
  }

  void finetuning() {
    if (chance(15)) {
      add("finetune.lora.rank", one_of({2, 3}));
      maybe(30, "finetune.lora.alpha", {1.0, 4.0});
      maybe(30, "finetune.lora.dropout", {0.1});
      if (family_ != "gpt2" && !latent_)
        maybe(40, "finetune.lora.targets", {"[\"q_proj\",\"v_proj\"]", "h.1.q", "h.0.*"});
    } else if (chance(12)) {
      add("finetune.freeze", one_of({"[\"wte\"]", "[\"*\",\"!h.1\"]", "[\"h.0\"]", "[\"h.*\"]", "[\"h.1\",\"wte\"]"}));
    } else {
      return;
    }
    if (dtype_ != "f64") maybe(30, "model.frozen_dtype", {"f32", "bf16"});
  }

  std::mt19937_64 random_;
  Settings settings_;
  std::string family_, dtype_, cluster_;
  int layers_ = 0, head_dim_ = 0, head_parts_ = 1, experts_ = 0, pipe_ = 1, rows_ = 1, microbatches_ = 1;
  bool exact_ = false, latent_ = false, sinks_ = false, key_bias_ = false, carries_segments_ = false;
  int data_ = 0, depth_ = 0, expert_ = 0, zero_ = 0;
};

// `examples` is where those of this repository lie.
inline Settings configuration(int number, const std::string& examples) {
  return RandomConfiguration(number, examples).settings();
}

}  // namespace stretto
