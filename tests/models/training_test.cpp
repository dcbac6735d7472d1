// What must not change a model's numbers: microbatches, padding, the way positions are looked up. And that its
// gradients are those of its loss.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "models/variants.h"
#include "stretto/models/family.h"
#include "stretto/train/trainer.h"

namespace stretto {
namespace {

constexpr i64 sequence_count = 4;

Batch batch_of(const std::vector<std::int32_t>& ids, const std::vector<std::int32_t>& targets,
               i64 rows = sequence_count) {
  const std::vector<i64> sizes{rows, i64(ids.size()) / rows};
  return {{"ids", Array::of<std::int32_t>(ids, sizes)}, {"targets", Array::of<std::int32_t>(targets, sizes)}};
}

Batch some_batch(const ModelConfig& c, i64 seq) {
  std::mt19937 random(1);
  std::vector<std::int32_t> ids(std::size_t(sequence_count * seq)), targets(ids.size());
  for (auto& x : ids) x = std::int32_t(random() % unsigned(c.vocab));
  // Rows have unequal numbers of targets.
  for (std::size_t i = 0; i < targets.size(); ++i)
    targets[i] = random() % 8 < i / std::size_t(seq) ? -100 : std::int32_t(random() % unsigned(c.vocab));
  return batch_of(ids, targets);
}

struct Setup {
  int microbatches = 1;
  u64 seed = 3;
  DType dtype = f64;
  i64 seq = 0;
};
Trainer trainer_of(const ModelConfig& c, Setup s = {}) {
  return Trainer(compile(make_model(c, sequence_count, s.seq), adamw({.lr = 1e-2}),
                         {.microbatches = s.microbatches, .seed = s.seed, .dtype = s.dtype}));
}

double distance(const Array& a, const Array& b) {
  const std::vector<double> x = a.doubles(), y = b.doubles();
  EXPECT_EQ(x.size(), y.size());
  // A key's bias has a gradient of zero: noise is measured against nothing smaller than this.
  double d = 0, size = 1e-6;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    d = std::max(d, std::abs(x[i] - y[i])), size = std::max(size, std::abs(y[i]));
  return d / size;
}

// Two trainers of models with the same parameters take the same first step, and the same ones after it.
void expect_same(Trainer& a, Trainer& b, const Batch& batch, double tolerance, const std::string& what) {
  for (int i = 0; i < 3; ++i) {
    const StepResult x = a.step(batch), y = b.step(batch);
    EXPECT_LE(std::abs(x.loss - y.loss) / y.loss, tolerance) << what << " step " << i + 1;
    for (const CompiledParam& p : a.compiled().params)
      EXPECT_LE(distance(a.gradient(p.name), b.gradient(p.name)), 100 * tolerance)
          << what << " step " << i + 1 << " " << p.name;
  }
}

TEST(ModelTraining, MicrobatchesDoNotChangeTheNumbers) {
  for (const test::Variant& v : test::variants()) {
    const Batch batch = some_batch(v.config, v.config.context);
    for (const double rate : {0.0, 0.3}) {
      ModelConfig c = v.config;
      c.dropout = c.embedding_dropout = rate;
      c.attention_dropout = family_named(c.family).attends ? rate : 0;
      for (const int m : {2, 4}) {
        Trainer one = trainer_of(c), many = trainer_of(c, {.microbatches = m});
        expect_same(many, one, batch, 1e-11, fmt::format("{}, dropout {}, {} microbatches:", v.name, rate, m));
      }
    }
  }
}

TEST(ModelTraining, DropoutDropsOnlyWhileTraining) {
  for (const char* family : {"gpt2", "llama", "mlp"})
    for (double ModelConfig::*where :
         {&ModelConfig::dropout, &ModelConfig::embedding_dropout, &ModelConfig::attention_dropout}) {
      if (where == &ModelConfig::attention_dropout && family == std::string("mlp")) continue;
      ModelConfig c{
          .family = family, .layers = 2, .width = 32, .heads = 4, .context = 16, .vocab = 33, .init_std = 0.2};
      const Batch batch = some_batch(c, c.context);
      Trainer without = trainer_of(c);
      c.*where = 0.5;
      Trainer with = trainer_of(c), again = trainer_of(c), other_seed = trainer_of(c, {.seed = 4});
      // The same weights under every seed: only what is dropped differs.
      for (const CompiledParam& p : with.compiled().params) other_seed.set_parameter(p.name, with.parameter(p.name));
      EXPECT_EQ(with.evaluate(batch).loss, without.evaluate(batch).loss) << family;
      const double loss = with.step(batch).loss;
      EXPECT_GT(std::abs(loss - without.step(batch).loss), 1e-6) << family;
      EXPECT_GT(std::abs(loss - other_seed.step(batch).loss), 1e-6) << family;
      EXPECT_EQ(loss, again.step(batch).loss) << family;
    }
}

TEST(ModelTraining, AttentionWithDropoutIsTheSameAttention) {
  for (const char* family : {"gpt2", "llama"}) {
    ModelConfig c{.family = family, .layers = 2, .width = 32, .heads = 4, .context = 16, .vocab = 33, .init_std = 0.2};
    const Batch batch = some_batch(c, c.context);
    Trainer fused = trainer_of(c, {.microbatches = 2});
    c.attention_dropout = 1e-13;  // drops nothing, but takes the other way
    Trainer composed = trainer_of(c, {.microbatches = 2});
    expect_same(composed, fused, batch, 1e-10, family);
  }
}

TEST(ModelTraining, PaddingOfTheVocabularyDoesNotChangeTheNumbers) {
  for (const char* family : {"gpt2", "llama", "mlp"})
    for (const bool tied : {false, true}) {
      ModelConfig c{.family = family, .layers = 1, .width = 16, .heads = 2, .context = 8, .vocab = 21, .tied = tied};
      const Batch batch = some_batch(c, c.context);
      Trainer plain = trainer_of(c, {.microbatches = 2});
      c.pad_vocab = 16;
      Trainer padded = trainer_of(c, {.microbatches = 2});
      expect_same(padded, plain, batch, 1e-11, family);
      EXPECT_EQ(padded.parameter("wte").sizes, (std::vector<i64>{21, 16}));
      EXPECT_NEAR(padded.step(batch).grad_norm, plain.step(batch).grad_norm, 1e-8);
    }
}

TEST(ModelTraining, PositionsAreTheFirstOfALongerContext) {
  ModelConfig c{.layers = 1, .width = 16, .heads = 2, .context = 8, .vocab = 21};
  const Batch batch = some_batch(c, 8);
  Trainer whole = trainer_of(c, {.microbatches = 2});
  c.context = 11;
  Trainer part = trainer_of(c, {.microbatches = 2, .seq = 8});
  std::vector<double> wpe = part.parameter("wpe").doubles();
  const double last = wpe.back();
  wpe.resize(8 * 16);
  whole.set_parameter("wpe", Array::of<double>(wpe, {8, 16}));
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(whole.step(batch).loss, part.step(batch).loss, 1e-10);
  const std::vector<double> gradient = part.gradient("wpe").doubles();
  for (std::size_t i = 8 * 16; i < gradient.size(); ++i) EXPECT_EQ(gradient[i], 0);
  // What no token reads only decays: by 1 - lr · decay a step.
  EXPECT_NEAR(part.parameter("wpe").doubles().back(), last * std::pow(1 - 1e-3, 3), 1e-12);
}

TEST(ModelTraining, LinearScalingSlowsEveryTurnDown) {
  const ModelConfig c{
      .family = "llama", .layers = 1, .width = 16, .heads = 2, .context = 8, .vocab = 21, .init_std = 0.5};
  ModelConfig slow = c;
  slow.rope_scaling = {.kind = RopeScaling::Kind::linear, .factor = 1};
  const Batch batch = some_batch(c, 8);
  EXPECT_EQ(trainer_of(slow).evaluate(batch).loss, trainer_of(c).evaluate(batch).loss);
  // Hardly turned at all, the last token sees a bag: the order of those before it is of no account.
  slow.rope_scaling.factor = 1e9;
  Trainer still = trainer_of(slow), turning = trainer_of(c);
  const auto last_of = [](Trainer& t, std::initializer_list<std::int32_t> first) {
    std::vector<std::int32_t> ids(sequence_count * 8, 3), targets(sequence_count * 8, -100);
    std::copy(first.begin(), first.end(), ids.begin());
    targets[7] = 5;
    return t.evaluate(batch_of(ids, targets)).loss;
  };
  EXPECT_NEAR(last_of(still, {1, 2, 7, 9}), last_of(still, {9, 7, 2, 1}), 1e-7);
  EXPECT_GT(std::abs(last_of(turning, {1, 2, 7, 9}) - last_of(turning, {9, 7, 2, 1})), 1e-4);
}

TEST(ModelTraining, EvaluationTakesOtherSizes) {
  const ModelConfig c{.layers = 1, .width = 16, .heads = 2, .context = 8, .vocab = 21};
  Trainer t = trainer_of(c, {.microbatches = 2});
  // The first 5 ids of row 2 alone give what they give inside the whole batch.
  std::vector<std::int32_t> ids(sequence_count * 8, 4), targets(sequence_count * 8, -100), part, next{1, 2, 3, 4, 5};
  for (std::size_t i = 0; i < 8; ++i) ids[16 + i] = std::int32_t(2 * i + 1);
  for (std::size_t i = 0; i < 5; ++i) part.push_back(ids[16 + i]), targets[16 + i] = next[i];
  EXPECT_NEAR(t.evaluate(batch_of(part, next, 1), {{"batch", 1}, {"seq", 5}}).loss,
              t.evaluate(batch_of(ids, targets)).loss, 1e-12);
}

TEST(ModelTraining, GradientsAreThoseOfTheLoss) {
  for (const test::Variant& v : test::variants()) {
    ModelConfig c = v.config;
    c.init_std = 0.3;
    if (c.activation == Activation::relu) c.activation = Activation::silu;  // no kinks here
    const Batch batch = some_batch(c, c.context);
    Trainer t = trainer_of(c, {.microbatches = 2});
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    std::map<std::string, Array> start;
    std::map<std::string, std::vector<double>> direction;
    for (const CompiledParam& p : t.compiled().params) {
      const Array a = t.parameter(p.name);
      std::vector<double> x = a.doubles();
      for (double& e : x) e += 0.1 * normal(random);  // biases and gains away from their special values
      start.emplace(p.name, Array::of<double>(x, a.sizes));
      for (double& e : x) e = normal(random);
      direction.emplace(p.name, x);
    }
    const auto go = [&](double step) {
      for (const auto& [name, a] : start) {
        std::vector<double> x = a.doubles();
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += step * direction.at(name)[i];
        t.set_parameter(name, Array::of<double>(x, a.sizes));
      }
    };
    constexpr double difference_step = 1e-5;
    go(difference_step);
    const double up = t.evaluate(batch).loss;
    go(-difference_step);
    const double down = t.evaluate(batch).loss;
    go(0);
    t.step(batch);
    double slope = 0;
    for (const auto& [name, d] : direction) {
      const std::vector<double> g = t.gradient(name).doubles();
      for (std::size_t i = 0; i < g.size(); ++i) slope += g[i] * d[i];
    }
    EXPECT_NEAR((up - down) / (2 * difference_step), slope, 1e-6 * std::max(1.0, std::abs(slope))) << v.name;
  }
}

TEST(ModelTraining, EveryVariantLearns) {
  for (const test::Variant& v : test::variants()) {
    const Batch batch = some_batch(v.config, v.config.context);
    Trainer t = trainer_of(v.config, {.microbatches = 2, .dtype = f32});
    const double first = t.step(batch).loss;
    EXPECT_NEAR(first, std::log(double(v.config.vocab)), 0.1) << v.name;
    for (int i = 0; i < 60; ++i) t.step(batch);
    EXPECT_LT(t.evaluate(batch).loss, v.config.family == "mlp" ? 0.9 * first : 0.3 * first) << v.name;
  }
}

}  // namespace
}  // namespace stretto
