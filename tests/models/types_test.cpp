// Tiny models of every type that is known by name, saved by transformers (tests/files/hf_models/make.py): logits,
// gradients, ten steps, and the same directory written again.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "gap.h"
#include "stretto/formats/safetensors.h"
#include "stretto/generate/generate.h"
#include "stretto/models/hf.h"
#include "stretto/train/trainer.h"
#include "support/files.h"

namespace stretto {
namespace {

using test::gap;
namespace fs = std::filesystem;

std::vector<std::string> all_types() {
  std::vector<std::string> names;
  for (const fs::directory_entry& e : fs::directory_iterator(fs::path(STRETTO_TEST_DATA) / "hf_models"))
    if (e.is_directory()) names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Types : public testing::TestWithParam<std::string> {
 protected:
  Types()
      : directory(fs::path(STRETTO_TEST_DATA) / "hf_models" / GetParam()),
        expected(directory / "expected.safetensors"),
        model(load_hf(directory, f64)) {
    const StoredTensor& t = expected.at("ids");
    rows = t.shape[0], length = t.shape[1];
    const std::vector<std::int32_t> ids = values<std::int32_t>(t);
    std::vector<std::int32_t> targets = ids;
    std::rotate(targets.begin(), targets.begin() + 1, targets.end());
    for (i64 r = 0; r < rows; ++r) targets[std::size_t((r + 1) * length - 1)] = -100;
    batch.emplace("ids", Array::of<std::int32_t>(ids, t.shape));
    batch.emplace("targets", Array::of<std::int32_t>(targets, t.shape));
  }
  std::unique_ptr<Trainer> trainer(DType dtype, const Parallel& parallel = {}, i64 pad = 1) const {
    ModelConfig config = model.config;
    config.pad_vocab = pad;
    config.balance_rate = 0;  // transformers leaves the bias as it is
    const Model traced = [c = config, rows = rows, length = length](Trace& t) {
      const Dim dim = t.batch("batch", rows), seq = t.size("seq", length),
                vocab = Dim{"vocab", c.vocab}.padded(c.pad_vocab);
      const Tensor ids = t.ids("ids", {dim, seq}), targets = t.ids("targets", {dim, seq});
      const Tensor logits = logits_of(t, c, ids);
      if (!t.training()) t.metric("logits", logits, Accumulate::concat);
      return cross_entropy(logits, targets, vocab);
    };
    const Optimizer adam = adamw({.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .decay = 0.1});
    auto t = std::make_unique<Trainer>(compile(traced, adam, {.dtype = dtype}, parallel));
    for (const auto& [name, array] : load_hf(directory, dtype).weights) t->set_parameter(name, array);
    return t;
  }
  fs::path directory;
  SafeTensors expected;
  HfModel model;
  Batch batch;
  i64 rows = 0, length = 0;
};

TEST_P(Types, LogitsLossesAndGradientsAreThoseOfTransformers) {
  const auto t = trainer(f64);
  EXPECT_LE(gap(t->evaluate(batch).lists.at("logits"), values<double>(expected.at("logits")), 1e-12), 1e-9);
  const std::vector<double> losses = values<double>(expected.at("losses"));
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double loss = t->step(batch).loss;
    EXPECT_NEAR(loss, losses[i], (i == 0 ? 1e-10 : 1e-8) * losses[i]) << "step " << i;
    for (const ParamSpec& p : family_named(model.config.family).params(model.config)) {
      if (i > 0 || p.name.ends_with(".select")) continue;
      const Array theirs = from_files(
          p, [&](const ParamSpec& one) -> const StoredTensor& { return expected.at("gradients." + one.stored); }, f64);
      EXPECT_LE(gap(t->gradient(p.name).doubles(), theirs.doubles(), 1e-12), 1e-5) << p.name;
    }
  }
}

TEST_P(Types, OnTwoRanksAndWithRecompute) {
  const auto serial = trainer(f64);
  const double first = serial->step(batch).loss, second = serial->step(batch).loss;
  for (const ParallelNames& names :
       {ParallelNames{.data = 2},
        {.tensor = 2},
        {.context = 2},
        model.config.experts ? ParallelNames{.expert = 2} : ParallelNames{.data = 2, .zero = 1}}) {
    Parallel p{.names = names};
    p.recompute = {Recompute::selective};
    const auto t = trainer(f64, p, 2);
    EXPECT_NEAR(t->step(batch).loss, first, 1e-10 * first);
    EXPECT_NEAR(t->step(batch).loss, second, 1e-10 * second);
  }
}

TEST_P(Types, GreedyTokensAreThoseOfTransformers) {
  const std::span<const std::int32_t> ids = batch.at("ids").as<std::int32_t>();
  const std::vector<std::int32_t> tokens = values<std::int32_t>(expected.at("greedy"));
  std::vector<std::int32_t> ours;
  generate(load_model(directory), {ids.begin(), ids.begin() + 4},
           {.tokens = i64(tokens.size()), .sample = {.temperature = 0}}, [&](std::int32_t id) {
             ours.push_back(id);
             return true;
           });
  EXPECT_EQ(ours, tokens);
}

TEST_P(Types, TheDirectoryIsWrittenAgain) {
  const test::Folder to;
  save_hf(to.str(), model.config, model.weights, {.stored = FileType::F64});
  const HfModel again = load_hf(to.str(), f64);
  EXPECT_EQ(again.config, model.config);
  const SafeTensors before(directory / "model.safetensors"), after(to / "model.safetensors");
  std::vector<std::string> theirs, ours;
  for (const auto& [name, tensor] : before.tensors()) theirs.push_back(name);
  for (const auto& [name, tensor] : after.tensors()) ours.push_back(name);
  EXPECT_EQ(ours, theirs);
  for (const std::string& name : ours) {
    EXPECT_EQ(after.at(name).shape, before.at(name).shape) << name;
    EXPECT_EQ(values<double>(after.at(name)), values<double>(before.at(name))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Types, testing::ValuesIn(all_types()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace stretto
