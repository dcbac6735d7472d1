// Adapters: those that PEFT has saved (tests/files/peft/make.py), ours as it reads them, and what is refused.
#include "stretto/models/lora.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gap.h"
#include "stretto/formats/safetensors.h"
#include "stretto/models/peft.h"
#include "stretto/train/trainer.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::gap;
namespace fs = std::filesystem;

const fs::path peft_folder = fs::path(STRETTO_TEST_DATA) / "peft",
               base_models = fs::path(STRETTO_TEST_DATA) / "hf_relatives",
               model_folder = fs::path(STRETTO_TEST_DATA) / "hf_models";
const std::vector<std::string> peft_models{"qwen3", "llama_biases", "mistral", "gpt2_erf"};

// A model with its logits as a metric, and ids as their own targets.
struct WithAdapter {
  explicit WithAdapter(const std::string& name)
      : base(load_hf(base_models / name, f64)),
        adapter(load_peft(peft_folder / name, base.config, f64)),
        expected(peft_folder / name / "expected.safetensors") {
    const StoredTensor& t = expected.at("ids");
    ids = Array::of<std::int32_t>(values<std::int32_t>(t), t.shape);
  }
  ModelConfig config() const {
    ModelConfig c = base.config;
    c.lora = adapter.lora;
    return c;
  }
  Trainer trainer(const ModelConfig& c, const Weights& weights, const Parallel& parallel = {}) const {
    const Model model = [c](Trace& t) {
      const Dim batch = t.batch("batch", 2), seq = t.size("seq", 12), vocab = Dim{"vocab", c.vocab}.padded(c.pad_vocab);
      const Tensor in = t.ids("ids", {batch, seq}), logits = logits_of(t, c, in);
      if (!t.training()) t.metric("logits", logits, Accumulate::concat);
      return cross_entropy(logits, in, vocab);
    };
    Training training{.dtype = f64};
    if (c.lora) training.frozen = {"*", "!*.lora_a", "!*.lora_b"};
    Trainer t(compile(model, sgd({.lr = 0.1}), training, parallel));
    for (const auto& [name, array] : weights) t.set_parameter(name, array);
    return t;
  }
  Weights all() const {
    Weights w = base.weights;
    w.insert(adapter.weights.begin(), adapter.weights.end());
    return w;
  }
  std::vector<double> logits(const ModelConfig& c, const Weights& w) const {
    return trainer(c, w).evaluate({{"ids", ids}}).lists.at("logits");
  }

  HfModel base;
  PeftAdapter adapter;
  SafeTensors expected;
  Array ids;
};

// transformers' rotary tables are f32.
double tolerance(const ModelConfig& c) { return c.family == "gpt2" ? 1e-9 : 4e-6; }

TEST(Lora, LogitsAreThoseOfPeft) {
  for (const std::string& name : peft_models) {
    const WithAdapter m(name);
    const std::vector<double> theirs = values<double>(m.expected.at("logits"));
    EXPECT_LE(gap(m.logits(m.config(), m.all()), theirs), tolerance(m.base.config)) << name;
    EXPECT_GE(gap(m.logits(m.base.config, m.base.weights), theirs), 1e-3) << name << ": the adapter does nothing";
  }
}

TEST(Lora, MergedWeightsSayTheSame) {
  for (const std::string& name : peft_models) {
    const WithAdapter m(name);
    const Weights whole = merged(m.config(), m.all());
    EXPECT_EQ(whole.size(), m.base.weights.size());
    EXPECT_LE(gap(m.logits(m.base.config, whole), values<double>(m.expected.at("merged"))), tolerance(m.base.config))
        << name;
  }
}

TEST(Lora, GradientsAreThoseOfPeftAndAllElseIsFrozen) {
  for (const std::string& name : peft_models)
    for (const Parallel& parallel :
         {Parallel{}, Parallel{.mesh = {{"pipe", 2}}, .schedule = "1f1b"}, Parallel{.names = {.tensor = 2}},
          Parallel{.names = {.tensor = 2, .sequence = true}}, Parallel{.names = {.data = 2, .zero = 3}}}) {
      const WithAdapter m(name);
      ModelConfig config = m.config();
      config.pad_vocab = 2;
      config.dropout = config.embedding_dropout = config.attention_dropout = 0;  // the expected numbers have none
      Trainer t = m.trainer(config, m.all(), parallel);
      t.step({{"ids", m.ids}});
      for (const AdapterSpec& s : adapter_specs(m.config()))
        for (const ParamSpec* p : {&s.a, &s.b}) {
          const std::vector<double> theirs = from_stored(*p, m.expected.at(p->stored), f64).doubles();
          EXPECT_LE(gap(t.gradient(p->name).doubles(), theirs), 1e-5) << name << " " << p->name;
        }
      for (const auto& [weight, before] : m.base.weights)
        EXPECT_EQ(t.parameter(weight).doubles(), before.doubles()) << weight;
      EXPECT_THROW((void)t.gradient("wte"), Error);
    }
}

TEST(Lora, BeginsAsPeftDoes) {
  ModelConfig c{.family = "llama", .layers = 1, .width = 64, .heads = 4, .context = 8, .vocab = 31};
  c = checked(c);
  c.lora = Lora{.rank = 32, .params = lora_params(c, {"o"})};
  Trainer t(compile(make_model(c, 1), sgd(), {.seed = 3, .frozen = {"*", "!*.lora_a", "!*.lora_b"}}));
  const std::vector<double> a = t.parameter("h.0.o.lora_a").doubles();
  double most = 0, square = 0;
  for (const double x : a) most = std::max(most, std::abs(x)), square += x * x / double(a.size());
  EXPECT_LE(most, 1.0 / 8);  // 1 / sqrt(64)
  EXPECT_NEAR(square, 1.0 / 64 / 3, 1e-3);
  for (const double x : t.parameter("h.0.o.lora_b").doubles()) EXPECT_EQ(x, 0);
}

TEST(Lora, EveryMatrixThatHasAnAdapterGetsOne) {
  for (const char* preset : {"gpt2", "llama", "mixtral", "mlp"}) {
    ModelConfig c{.family = preset, .layers = 2, .width = 16, .heads = 4, .context = 8, .vocab = 31};
    c = checked(c);
    c.lora = Lora{.rank = 2, .params = lora_params(c, {"all"})};
    Trace t;
    make_model(c, 1)(t);
    std::size_t adapters = 0;
    for (const ParamInfo& p : t.params) adapters += p.name.ends_with(lora_a);
    EXPECT_EQ(adapters, c.lora->params.size()) << preset;
    EXPECT_GE(adapters, 4u) << preset;
  }
}

TEST(Lora, TargetsAreOurNamesOrPefts) {
  const ModelConfig gpt2 = checked({.family = "gpt2", .layers = 2}), llama = checked({.family = "llama", .layers = 2});
  using Names = std::vector<std::string>;
  EXPECT_EQ(lora_params(llama, {"q_proj", "v"}), (Names{"h.0.q", "h.0.v", "h.1.q", "h.1.v"}));
  EXPECT_EQ(lora_params(llama, {"h.1.*"}),
            (Names{"h.1.q", "h.1.k", "h.1.v", "h.1.o", "h.1.gate", "h.1.up", "h.1.down"}));
  EXPECT_EQ(lora_params(llama, {"layers.0.mlp.up_proj"}), (Names{"h.0.up"}));
  EXPECT_EQ(lora_params(gpt2, {"c_proj"}), (Names{"h.0.o", "h.0.down", "h.1.o", "h.1.down"}));
  EXPECT_EQ(lora_params(gpt2, {"attn.c_proj"}), (Names{"h.0.o", "h.1.o"}));
  EXPECT_EQ(refusal_of([&] { lora_params(llama, {"q_porj"}); }),
            "[lora] no weight of the model is called 'q_porj'; hint: did you mean 'q_proj'? there are down, down_proj, "
            "gate, gate_proj, k, k_proj, o, o_proj, q, q_proj, up, up_proj, v, v_proj, or \"all\"");
  EXPECT_EQ(refusal_of([&] { lora_params(llama, {"lm_head"}); }).substr(0, 98),
            "[lora] target 'lm_head' is 'head', and embeddings, heads, routers and experts have no adapters; hi");
  ModelConfig tied = llama;
  tied.tied = true;
  EXPECT_EQ(refusal_of([&] { lora_params(tied, {"lm_head"}); }).substr(0, 58),
            "[lora] target 'lm_head' is 'wte', and embeddings, heads, r");
  EXPECT_EQ(
      refusal_of([&] { lora_params(llama, {"qkv_proj"}); }),
      "[lora] no weight of the model is called 'qkv_proj'; hint: this model has it in parts: q_proj, k_proj, v_proj");
  const ModelConfig phi3 = read_hf_config(model_folder / "phi3").config;
  EXPECT_EQ(lora_params(phi3, {"qkv_proj"}), (Names{"h.0.q", "h.0.k", "h.0.v", "h.1.q", "h.1.k", "h.1.v"}));
  EXPECT_EQ(refusal_of([&] { lora_params(phi3, {"v_proj"}); }),
            "[lora] no weight of the model is called 'v_proj'; hint: its files have it in 'qkv_proj'; 'v' is this part "
            "alone, with an adapter of its own");
  EXPECT_EQ(refusal_of([&] { lora_params(llama, {}); }),
            "[lora] there are no targets; hint: name some, e.g. [\"q_proj\", \"v_proj\"]");
}

// PEFT takes gate_proj, up_proj and down_proj of these types for the experts', as tests/files/peft/make.py experts
// tries.
TEST(Peft, WhatItWouldDropIsLeftOutOrRefused) {
  using Names = std::vector<std::string>;
  const auto config = [](const char* model) { return read_hf_config(model_folder / model).config; };
  const auto exportable = [&](const char* model) { return lora_params(config(model), {"exportable"}); };
  const auto all = [&](const char* model) { return lora_params(config(model), {"all"}); };
  EXPECT_EQ(exportable("qwen3_moe_sparse"),
            (Names{"h.0.q", "h.0.k", "h.0.v", "h.0.o", "h.1.q", "h.1.k", "h.1.v", "h.1.o"}));
  EXPECT_EQ(all("qwen3_moe_sparse").size(), 11u);
  EXPECT_EQ(exportable("deepseek_v3"), (Names{"h.0.q_a", "h.0.q", "h.0.o", "h.1.q_a", "h.1.q", "h.1.o"}));
  EXPECT_EQ(exportable("phi3"), (Names{"h.0.o", "h.0.down", "h.1.o", "h.1.down"}));
  for (const char* same : {"qwen3", "qwen2_moe", "llama4", "olmoe", "mixtral_window"})
    EXPECT_EQ(exportable(same), all(same)) << same;
  ModelConfig c = config("qwen3_moe_sparse");
  c.lora = Lora{.rank = 2, .params = lora_params(c, {"all"})};
  EXPECT_EQ(
      refusal_of([&] { check_peft(c); }),
      "[peft] 'h.0.gate' is 'model.layers.0.mlp.gate_proj', and PEFT takes every 'gate_proj' of qwen3_moe for the "
      "experts' own, which have no adapters here; hint: finetune.lora.targets = \"exportable\" leaves it out; "
      "checkpoint.export writes the merged model");
  c.lora->params = exportable("qwen3_moe_sparse");
  check_peft(c);
}

TEST(Peft, WhatIsWrittenIsReadAgain) {
  for (const std::string& name : peft_models) {
    const WithAdapter m(name);
    const test::Folder to;
    save_peft(to / "out", {.config = m.config(), .weights = m.all(), .base = "somewhere", .stored = FileType::F64});
    const PeftAdapter again = load_peft(to / "out", m.base.config, f64);
    EXPECT_EQ(again.lora, m.adapter.lora) << name;
    EXPECT_EQ(again.base, "somewhere");
    ASSERT_EQ(again.weights.size(), m.adapter.weights.size());
    for (const auto& [key, array] : m.adapter.weights) EXPECT_EQ(again.weights.at(key).doubles(), array.doubles());
    const SafeTensors theirs(peft_folder / name / peft_weights_name), ours((to / "out") / peft_weights_name);
    for (const auto& [key, tensor] : theirs.tensors()) EXPECT_EQ(ours.at(key).shape, tensor.shape) << key;
    EXPECT_EQ(ours.tensors().size(), theirs.tensors().size());
  }
}

TEST(Peft, RefusesWhatItDoesNotKnow) {
  const ModelConfig qwen3 = read_hf_config(base_models / "qwen3").config;
  const test::Folder to;
  const auto said = [&](const std::string& key, const std::string& value) {
    fs::remove_all(to / "a");
    fs::copy(peft_folder / "qwen3", to / "a");
    std::string json = test::text_of((to / "a") / peft_config_name);
    const std::size_t at = json.find("\"" + key + "\": "), begin = at + key.size() + 4;
    json.replace(begin, json.find_first_of(",\n", begin) - begin, value);
    to.write("a/" + std::string(peft_config_name), json);
    std::string text = refusal_of([&] { load_peft(to / "a", qwen3); });
    const std::string place = (to / "a").string() + "/";
    for (std::size_t p; (p = text.find(place)) != text.npos;) text.erase(p, place.size());
    return text;
  };
  EXPECT_EQ(said("use_rslora", "true"),
            "[adapter_config.json] 'use_rslora' is true, which is not supported; hint: merge it into the model with "
            "PEFT (merge_and_unload) and read that");
  EXPECT_EQ(said("bias", "\"all\"").substr(0, 44), "[adapter_config.json] 'bias' is \"all\", which");
  EXPECT_EQ(said("peft_type", "\"LOHA\""), "[adapter_config.json] peft_type is \"LOHA\"; hint: only LORA is read");
  EXPECT_NE(
      said("r", "5").find("tensor 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight' is F64 [4, 16], "
                          "and the model's is [5, 16]"),
      std::string::npos)
      << said("r", "5");
  EXPECT_NE(said("r", "0").find("key 'r' is 0"), std::string::npos) << said("r", "0");
  const std::string other = refusal_of([&] { load_peft(peft_folder / "gpt2_erf", qwen3); });
  EXPECT_NE(other.find("is no adapter of a weight of this model"), std::string::npos) << other;
}

}  // namespace
}  // namespace stretto
