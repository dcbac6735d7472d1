#include "stretto/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

// Two inputs, a loss of two terms, and metrics of every kind.
Model reporting() {
  return [](Trace& t) {
    const Dim batch = t.batch("batch", 8), in{"in", 4};
    const Tensor x = t.input("x", {batch, in});
    const Tensor y = x * t.param("w", {in}, {.init = ones});
    t.metric("total", sum(y, {batch, in}), Accumulate::sum);
    t.metric("mean", mean(y, {batch, in}), Accumulate::mean);
    t.metric("most", max(y, {batch, in}), Accumulate::max);
    t.metric("rows", sum(y, {in}), Accumulate::concat);
    return mean_of(square(y)) + 0.5 * named("sparsity", mean_of(y));
  };
}

std::vector<float> ramp(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = float(i) / 8 - 1;
  return v;
}

TEST(Trainer, MetricsAreAccumulatedEachInTheirOwnWay) {
  const std::vector<float> x = ramp(32);
  double total = 0, most = -100, squares = 0;
  for (float v : x) total += double(v), most = std::max(most, double(v)), squares += double(v) * double(v);
  for (int m : {1, 2, 4, 8}) {
    Trainer trainer(compile(reporting(), sgd({.lr = 0}), {.microbatches = m}));
    const StepResult r = trainer.step({{"x", Array::of<float>(x, {8, 4})}});
    EXPECT_NEAR(r.metrics.at("total"), total, 1e-5);
    EXPECT_NEAR(r.metrics.at("mean"), total / 32, 1e-6);
    EXPECT_NEAR(r.metrics.at("most"), most, 1e-6);
    EXPECT_NEAR(r.metrics.at("sparsity"), total / 32, 1e-6);
    EXPECT_NEAR(r.loss, squares / 32 + 0.5 * total / 32, 1e-6);
    ASSERT_EQ(r.lists.at("rows").size(), 8u);
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_NEAR(r.lists.at("rows")[i], double(x[4 * i] + x[4 * i + 1] + x[4 * i + 2] + x[4 * i + 3]), 1e-5);
  }
}

TEST(Trainer, ANormInTheLossHasAGradient) {
  const Model model = [](Trace& t) {
    const Dim batch = t.batch("batch", 8), in{"in", 4};
    const Tensor x = t.input("x", {batch, in}), w = t.param("w", {in}, {.init = ones});
    return mean_of(x * w) + 0.5 * named("penalty", mean_of(cast(squared_norm(w), w.type().dtype)));
  };
  Trainer trainer(compile(model, sgd({.lr = 0}), {.microbatches = 2}));
  const StepResult r = trainer.step({{"x", Array::of<float>(std::vector<float>(32, 0.0f), {8, 4})}});
  EXPECT_NEAR(r.loss, 0.5 * 4, 1e-6);
  const Array gradient = trainer.gradient("w");
  for (const float g : gradient.as<float>()) EXPECT_NEAR(g, 1, 1e-6);
}

TEST(Trainer, EvaluationSeesTheSameParametersAndChangesNothing) {
  ModelConfig config = tiny("gpt2");
  config.dropout = 0.2;
  Trainer trainer(compile(make_model(config, 4), adamw({.lr = 1e-2}), {.microbatches = 2}));
  const Batch batch = random_batch(trainer.compiled(), config.vocab);
  for (int i = 0; i < 3; ++i) trainer.step(batch);
  const u64 before = trainer.parameters_hash();
  const double once = trainer.evaluate(batch).loss;
  EXPECT_EQ(once, trainer.evaluate(batch).loss);
  EXPECT_EQ(before, trainer.parameters_hash());
  // One row at a time gives the same mean.
  double sum = 0;
  for (i64 row = 0; row < 4; ++row) {
    Batch one;
    for (const auto& [name, a] : batch) {
      const auto all = a.as<std::int32_t>();
      const std::size_t n = all.size() / 4;
      one[name] = Array::of<std::int32_t>(all.subspan(std::size_t(row) * n, n), {1, a.sizes[1]});
    }
    sum += trainer.evaluate(one, {{"batch", 1}}).loss;
  }
  EXPECT_NEAR(sum / 4, once, 1e-6);
}

TEST(Trainer, SameSeedSameBitsOtherSeedOther) {
  const auto run = [](u64 seed) {
    Trainer trainer(compile(make_model(tiny("llama"), 4), adamw(), {.microbatches = 2, .seed = seed}));
    const Batch batch = random_batch(trainer.compiled(), 50);
    for (int i = 0; i < 3; ++i) trainer.step(batch);
    return trainer.parameters_hash();
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(Trainer, MistakesInABatchAreNamed) {
  Trainer trainer(compile(reporting(), sgd()));
  const std::vector<float> x(32);
  EXPECT_EQ(refusal_of([&] { trainer.step({}); }),
            "[batch] input 'x' is missing; hint: give an array for each of the model's inputs");
  EXPECT_EQ(refusal_of([&] {
              trainer.step({{"z", Array::of<float>(x, {8, 4})}});
            }),
            "[batch] 'z' is not an input of the model; hint: did you mean 'x'? its inputs are x");
  EXPECT_EQ(refusal_of([&] {
              trainer.step({{"x", Array::of<float>(x, {4, 8})}});
            }),
            "[batch] input 'x' is f32[4, 8] and should be f32[8, 4]; hint: a batch holds the rows of the whole step, "
            "all microbatches together");
}

// Before the step begins: a loop may leave a bad batch out and go on, as if it had never been there.
TEST(Trainer, IdsBeyondTheVocabularyAreRefusedAndTheNextBatchIsTaken) {
  for (const Parallel& p : {Parallel{}, Parallel{.mesh = {{"pipe", 2}}}}) {
    const Compiled c = compile(make_model(tiny("gpt2"), 4), sgd(), {.microbatches = 2}, p);
    Trainer trainer(c), never(c);
    const Batch good = random_batch(c, 50);
    const auto spoilt = [&](const std::string& input, std::int32_t id) {
      Batch bad = good;
      reinterpret_cast<std::int32_t*>(bad.at(input).bytes.data())[good.at(input).sizes[1] + 3] = id;
      return refusal_of([&] { trainer.step(bad); });
    };
    EXPECT_EQ(spoilt("ids", 50),
              "[embedding] id 50 is outside of dim 'vocab', which has 50 rows; hint: compare the vocabulary of the "
              "tokenizer with the model's (batch, input 'ids' at [1, 3])");
    EXPECT_EQ(trainer.step(good).loss, never.step(good).loss);
    EXPECT_EQ(spoilt("targets", -1),
              "[cross_entropy] label -1 is outside of dim 'vocab', which has 50 classes; hint: positions without a "
              "label hold -100 (batch, input 'targets' at [1, 3])");
    EXPECT_EQ(spoilt("targets", -100), "no error");
    never.step([&] {
      Batch b = good;
      reinterpret_cast<std::int32_t*>(b.at("targets").bytes.data())[good.at("targets").sizes[1] + 3] = -100;
      return b;
    }());
    EXPECT_EQ(trainer.parameters_hash(), never.parameters_hash());
  }
}

TEST(Trainer, RowsThatMicrobatchesDoNotDivideAreRefused) {
  EXPECT_EQ(refusal_of([] { compile(reporting(), sgd(), {.microbatches = 3}); }),
            "[batch] dim 'batch' has 8 rows per step, which 3 microbatches do not divide; hint: use 6 or 9 rows");
}

TEST(Trainer, UnusedParametersAreRefused) {
  const Model model = [](Trace& t) {
    const Dim batch = t.batch("batch", 2);
    t.param("lost", {{"a", 3}});
    return mean_of(t.input("x", {batch}) * t.param("w", {}));
  };
  EXPECT_EQ(refusal_of([&] { compile(model, sgd()); }),
            "[model] parameter 'lost' does not reach the loss; hint: remove it, use it, or make it not trainable");
}

// A padded parameter keeps its logical shape outside, and its padding stays zero through training.
TEST(Trainer, PaddingIsInvisible) {
  const auto model = [](i64 multiple) -> Model {
    return [=](Trace& t) {
      const Dim batch = t.batch("batch", 4), in{"in", 6}, label = Dim{"label", 5}.padded(multiple);
      const Tensor logits = contract(t.input("x", {batch, in}), t.param("w", {in, label}), in);
      return cross_entropy(logits, t.ids("y", {batch}), label);
    };
  };
  std::vector<float> x = ramp(24);
  const std::vector<std::int32_t> y{0, 4, 2, -100};
  std::vector<double> losses;
  for (i64 multiple : {1, 8, 64}) {
    Trainer trainer(compile(model(multiple), adamw({.lr = 0.1}), {.clip = 1}));
    const Batch batch{{"x", Array::of<float>(x, {4, 6})}, {"y", Array::of<std::int32_t>(y, {4})}};
    for (int i = 0; i < 4; ++i) trainer.step(batch);
    losses.push_back(trainer.step(batch).loss);
    EXPECT_EQ(trainer.parameter("w").sizes, (std::vector<i64>{6, 5}));
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-6);
  EXPECT_NEAR(losses[0], losses[2], 1e-6);
}

}  // namespace
}  // namespace stretto
