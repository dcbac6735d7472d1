// Models saved by Hugging Face transformers, and what PyTorch makes of them: logits, losses, gradients, ten steps.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "gap.h"
#include "stretto/formats/safetensors.h"
#include "stretto/models/hf.h"
#include "stretto/train/trainer.h"
#include "support/files.h"

namespace stretto {
namespace {

using test::gap;
namespace fs = std::filesystem;

double number(const Field& f) { return std::stod(std::get<std::string>(f.value)); }  // kept as text, all digits

struct Oracle {
  explicit Oracle(const std::string& name)
      : directory(fs::path(STRETTO_TEST_DATA) / "hf" / name),
        expected(read_json_file(directory / "expected.json")),
        arrays(directory / "expected.safetensors"),
        gradients(directory / "grads.safetensors"),
        final(directory / "final.safetensors"),
        config(read_hf_config(directory / "model").config) {
    const SafeTensors file(directory / "batch.safetensors");
    const auto add = [&](const char* ours, const char* theirs) {
      const StoredTensor& t = file.at(theirs);
      batch.emplace(ours, Array::of<std::int32_t>(values<std::int32_t>(t), t.shape));
    };
    add("ids", "input_ids");
    add("targets", "targets");
  }
  double at(const char* key) const { return number(*expected.find(key)); }
  std::vector<double> list(const char* table, const char* key) const {
    std::vector<double> r;
    for (const Field& f : *expected.find(table)->find(key)->array()) r.push_back(number(f));
    return r;
  }
  static Array array(const SafeTensors& file, const ParamSpec& p) {
    return from_files(
        p, [&](const ParamSpec& one) -> const StoredTensor& { return file.at(one.stored); }, f64);
  }
  std::vector<ParamSpec> params() const { return family_named(config.family).params(config); }

  fs::path directory;
  Field expected;
  SafeTensors arrays, gradients, final;
  ModelConfig config;
  Batch batch;
};

constexpr i64 row_count = 4, seq_size = 32, vocab_size = 256;

// The model with its logits as a metric of evaluation, and the weights of the files.
std::unique_ptr<Trainer> trainer_of(const Oracle& o, DType dtype, int microbatches, double clip) {
  const Model model = [c = o.config](Trace& t) {
    const Dim batch = t.batch("batch", row_count), seq = t.size("seq", seq_size), vocab{"vocab", c.vocab};
    const Tensor ids = t.ids("ids", {batch, seq}), targets = t.ids("targets", {batch, seq});
    const Tensor logits = logits_of(t, c, ids);
    if (!t.training()) t.metric("logits", logits, Accumulate::concat);
    return cross_entropy(logits, targets, vocab);
  };
  const Optimizer adam = adamw({.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .decay = 0.1});
  auto trainer =
      std::make_unique<Trainer>(compile(model, adam, {.microbatches = microbatches, .dtype = dtype, .clip = clip}));
  for (const auto& [name, array] : load_hf(o.directory / "model", dtype).weights) trainer->set_parameter(name, array);
  return trainer;
}

double relative(double a, double b) { return std::abs(a - b) / std::abs(b); }

struct Case {
  const char* model;
  DType dtype;
  int microbatches;
};
class Oracles : public testing::TestWithParam<Case> {
 protected:
  Oracle oracle{GetParam().model};
  const bool exact = GetParam().dtype == f64;
  std::unique_ptr<Trainer> trainer(double clip) const {
    return trainer_of(oracle, GetParam().dtype, GetParam().microbatches, clip);
  }
};

TEST_P(Oracles, LogitsAndTokenLosses) {
  const auto t = trainer(0);
  const StepResult r = t->evaluate(oracle.batch);
  EXPECT_LE(relative(r.loss, oracle.at("loss")), exact ? 1e-9 : 1e-5);
  const std::vector<double>& logits = r.lists.at("logits");
  ASSERT_EQ(i64(logits.size()), row_count * seq_size * vocab_size);
  const std::vector<double> row0(logits.begin(), logits.begin() + seq_size * vocab_size);
  EXPECT_LE(gap(row0, values<double>(oracle.arrays.at("logits_row0"))), exact ? 1e-9 : 1e-5);
  // The loss of every token that counts, from our logits.
  const std::vector<double> expected = values<double>(oracle.arrays.at("token_loss"));
  const std::span<const std::int32_t> targets = oracle.batch.at("targets").as<std::int32_t>();
  std::vector<double> ours, theirs;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == -100) continue;
    const std::span<const double> l = std::span(logits).subspan(i * vocab_size, vocab_size);
    double sum = 0;
    for (double x : l) sum += std::exp(x);
    ours.push_back(std::log(sum) - l[std::size_t(targets[i])]);
    theirs.push_back(expected[i]);
  }
  EXPECT_EQ(ours.size(), 70u);
  EXPECT_LE(gap(ours, theirs), exact ? 1e-9 : 1e-5);
}

TEST_P(Oracles, LossAndEveryGradient) {
  const auto t = trainer(0);
  const StepResult r = t->step(oracle.batch);
  EXPECT_LE(relative(r.loss, oracle.at("loss")), exact ? 1e-9 : 1e-5);
  EXPECT_LE(relative(r.grad_norm, oracle.at("grad_norm")), exact ? 1e-9 : 1e-5);
  for (const ParamSpec& p : oracle.params()) {
    const Array expected = oracle.array(oracle.gradients, p);
    // The file is rounded to f32.
    EXPECT_LE(gap(t->gradient(p.name).doubles(), expected.doubles()), exact ? 1e-7 : 1e-5) << p.name;
  }
}

void ten_steps(const Oracle& o, Trainer& t, const char* table, bool exact) {
  const std::vector<double> losses = o.list(table, "loss"), norms = o.list(table, "grad_norm");
  ASSERT_EQ(losses.size(), 11u);
  for (std::size_t i = 0; i < 10; ++i) {
    const StepResult r = t.step(o.batch);
    EXPECT_LE(relative(r.loss, losses[i]), exact ? 1e-9 : 1e-5) << "step " << i + 1;
    EXPECT_LE(relative(r.grad_norm, norms[i]), exact ? 1e-8 : 1e-4) << "step " << i + 1;
  }
  EXPECT_LE(relative(t.evaluate(o.batch).loss, losses[10]), exact ? 1e-9 : 1e-5);
}

TEST_P(Oracles, TenStepsWithClipping) {
  const auto t = trainer(1.0);
  ten_steps(oracle, *t, "train", exact);
  const Weights initial = load_hf(oracle.directory / "model", f64).weights;
  for (const ParamSpec& p : oracle.params()) {
    std::vector<double> ours = t->parameter(p.name).doubles(), before = initial.at(p.name).doubles();
    std::vector<double> expected = oracle.array(oracle.final, p).doubles();
    if (p.name.ends_with("qkv.bias")) {
      // A key's bias does not change the attention: its gradient is zero in mathematics and its steps are noise.
      const auto third = std::ptrdiff_t(ours.size() / 3);
      for (auto* v : {&ours, &before, &expected}) v->erase(v->begin() + third, v->begin() + 2 * third);
    }
    double difference = 0, moved = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      difference += std::pow(ours[i] - expected[i], 2);
      moved += std::pow(expected[i] - before[i], 2);
    }
    EXPECT_LE(std::sqrt(difference / moved), 3e-4) << p.name;
  }
}

TEST_P(Oracles, TenStepsWithoutClipping) {
  const auto t = trainer(0);
  ten_steps(oracle, *t, "train_without_clipping", exact);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Oracles,
    testing::Values(Case{"gpt2", f32, 1}, Case{"gpt2", f32, 2}, Case{"gpt2", f32, 4}, Case{"gpt2", f64, 1},
                    Case{"gpt2", f64, 2}, Case{"gpt2", f64, 4}, Case{"llama", f32, 1}, Case{"llama", f32, 2},
                    Case{"llama", f32, 4}, Case{"llama", f64, 1}, Case{"llama", f64, 2}, Case{"llama", f64, 4},
                    Case{"mixtral", f32, 1}, Case{"mixtral", f32, 2}, Case{"mixtral", f64, 1}, Case{"mixtral", f64, 4}),
    [](const auto& info) {
      return fmt::format("{}_{}_{}", info.param.model, name_of(info.param.dtype), info.param.microbatches);
    });

// The router's penalty over all tokens and layers, as Hugging Face adds it when asked for the router's logits: over all
// rows of a microbatch, whoever holds them.
TEST(OracleExperts, PenaltyAndItsGradients) {
  Oracle o("mixtral");
  const Field& moe = *o.expected.find("moe");
  o.config.balance = std::get<double>(moe.find("router_aux_loss_coef")->value);
  ASSERT_TRUE(o.config.balance_pooled);
  const SafeTensors file(o.directory / "moe.safetensors");
  for (const int data : {1, 2, 4}) {
    Trainer t(compile(make_model(o.config, row_count, seq_size), adamw(), {.dtype = f64}, {.names = {.data = data}}));
    for (const auto& [name, array] : load_hf(o.directory / "model", f64).weights) t.set_parameter(name, array);
    const StepResult r = t.step(o.batch);
    EXPECT_LE(relative(r.loss, number(*moe.find("loss_with_aux"))), 1e-9) << data;
    EXPECT_LE(relative(r.grad_norm, number(*moe.find("grad_norm_with_aux"))), 1e-9) << data;
    for (const ParamSpec& p : o.params()) {
      if (!p.name.ends_with("router")) continue;
      EXPECT_LE(gap(t.gradient(p.name).doubles(), Oracle::array(file, p).doubles()), 1e-7) << p.name << ", " << data;
    }
  }
}

TEST(OracleExport, TrainedWeightsComeBackFromDisk) {
  const Oracle o("gpt2");
  const auto t = trainer_of(o, f32, 1, 1.0);
  t->step(o.batch);
  Weights w;
  for (const ParamSpec& p : o.params()) w.emplace(p.name, t->parameter(p.name));
  const test::Folder to;
  save_hf(to.str(), o.config, w);
  const auto again = trainer_of(o, f32, 1, 1.0);
  for (const auto& [name, array] : load_hf(to.str()).weights) again->set_parameter(name, array);
  EXPECT_EQ(again->evaluate(o.batch).loss, t->evaluate(o.batch).loss);
  EXPECT_EQ(again->parameters_hash(), t->parameters_hash());
}

}  // namespace
}  // namespace stretto
