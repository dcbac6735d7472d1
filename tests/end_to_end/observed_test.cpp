// States that a step changes without a gradient: running statistics, and the bias that evens experts' loads out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/stretto.h"
#include "support/files.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

constexpr i64 row_count = 16, in_size = 4, hidden_size = 8;

// Two layers, each with the running mean and variance of what goes into it.
Loss normalised(Trace& t) {
  const Dim batch = t.batch("batch", row_count), in{"in", in_size}, hidden{"hidden", hidden_size};
  const auto centred = [&](Tensor x, const Dim& width) {
    const Tensor mean_so_far = t.state("mean", width), spread = t.state("spread", width, ones);
    const auto follow = [](Tensor value, Tensor seen) { return value * 0.9 + seen * 0.1; };
    t.observe(mean_so_far, mean(x, batch), follow);
    t.observe(spread, mean(square(x - cast(mean_so_far, x.dtype())), batch), follow);
    return (x - cast(mean_so_far, x.dtype())) * rsqrt(cast(spread, x.dtype()) + 1e-5);
  };
  Tensor h;
  {
    const Scope first(t, "first");
    h = contract(centred(t.input("x", {batch, in}), in), t.param("w", {in, hidden}, {.init = normal(0.5)}), in);
  }
  h = boundary(gelu(h));
  const Scope second(t, "second");
  const Tensor y = contract(centred(h, hidden), t.param("w", hidden, {.init = normal(0.5)}), hidden);
  return mean_of(square(y - t.input("y", batch)));
}

Batch rows_of(i64 step, DType dtype) {
  std::vector<double> x(row_count * in_size), y(row_count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7 * double(i) + double(step)) + 0.3;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::cos(double(i));
  const auto as = [&]<class T>(T) -> Batch {
    const std::vector<T> a(x.begin(), x.end()), b(y.begin(), y.end());
    return {{"x", Array::of<T>(a, {row_count, in_size})}, {"y", Array::of<T>(b, {row_count})}};
  };
  return dtype == f64 ? as(double()) : as(float());
}

Compiled of_layout(const Parallel& p, DType dtype = f32, Training training = {.microbatches = 4, .clip = 0.5}) {
  training.dtype = dtype;
  return compile(normalised, adamw({.lr = 1e-2}), training, p);
}

struct After {
  u64 parameters = 0;
  std::vector<double> numbers;
  bool operator==(const After&) const = default;
};
After after_three(Compiled c, DType dtype = f32) {
  Trainer t(std::move(c));
  After all;
  for (int i = 0; i < 3; ++i) {
    const StepResult r = t.step(rows_of(i, dtype));
    all.numbers.insert(all.numbers.end(), {r.loss, r.grad_norm});
  }
  for (const char* name : {"first.mean", "second.mean", "second.spread"})
    for (const double x : t.parameter(name).doubles()) all.numbers.push_back(x);
  all.parameters = t.parameters_hash();
  return all;
}

TEST(Observed, TheRunningMeanIsTheOneMadeByHand) {
  Trainer t(of_layout({}, f64));
  std::vector<double> expected(in_size, 0);
  for (int step = 0; step < 3; ++step) {
    const Batch batch = rows_of(step, f64);
    const std::vector<double> x = batch.at("x").doubles();
    t.step(batch);
    for (i64 k = 0; k < in_size; ++k) {
      double sum = 0;
      for (i64 row = 0; row < row_count; ++row) sum += x[row * in_size + k];
      expected[k] = 0.9 * expected[k] + 0.1 * sum / row_count;
      EXPECT_NEAR(t.parameter("first.mean").doubles()[k], expected[k], 1e-14);
    }
  }
  EXPECT_THROW((void)t.state("first.mean", "m"), Error);  // the optimizer has nothing to do with it
}

TEST(Observed, EveryScheduleHasTheBitsOfTheSerialRun) {
  const After serial = after_three(of_layout({}));
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "eager-1f1b"})
    for (const Recompute recompute : {Recompute::none, Recompute::full, Recompute::selective})
      EXPECT_EQ(after_three(of_layout({.mesh = {{"pipe", 2}}, .schedule = schedule, .recompute = {recompute}})), serial)
          << schedule;
  EXPECT_EQ(after_three(of_layout({.mesh = {{"pipe", 2}}}, f32, {.microbatches = 4, .clip = 0.5, .clip_late = true})),
            serial);
}

TEST(Observed, EveryLayoutHasTheNumbersOfTheSerialRun) {
  const After serial = after_three(of_layout({}, f64), f64);
  for (const Parallel& p : std::vector<Parallel>{
           {.names = {.data = 2}},
           {.names = {.data = 2, .zero = 1}},
           {.names = {.data = 2, .zero = 2}},
           {.names = {.data = 4, .zero = 3}},
           {.mesh = {{"wide", 2}}, .layout = {{"hidden", "wide"}}},
           {.mesh = {{"pipe", 2}, {"wide", 2}}, .names = {.data = 2, .zero = 1}, .layout = {{"hidden", "wide"}}}}) {
    const After there = after_three(of_layout(p, f64), f64);
    for (std::size_t i = 0; i < serial.numbers.size(); ++i)
      EXPECT_NEAR(there.numbers[i], serial.numbers[i], 1e-12) << p.mesh.str() << " zero " << p.names.zero << ", " << i;
  }
}

TEST(Observed, ExactTrainingHasOneHash) {
  const Training exact{.microbatches = 4, .clip = 0.5, .exact = true};
  const After serial = after_three(of_layout({}, f32, exact));
  EXPECT_EQ(after_three(of_layout({.names = {.data = 2}}, f32, exact)), serial);
  EXPECT_EQ(after_three(of_layout({.mesh = {{"pipe", 2}}, .names = {.data = 2}, .schedule = "zb-h1"}, f32, exact)),
            serial);
}

TEST(Observed, TheyAreSavedAndGoOnUnderAnotherLayout) {
  const test::Folder folder;
  Trainer whole(of_layout({}, f64)), first(of_layout({}, f64)), then(of_layout({.names = {.data = 2, .zero = 1}}, f64));
  for (int i = 0; i < 3; ++i) whole.step(rows_of(i, f64));
  first.step(rows_of(0, f64));
  save(first, folder.str());
  ASSERT_TRUE(load(then, folder.str()));
  for (int i = 1; i < 3; ++i) then.step(rows_of(i, f64));
  for (const char* name : {"first.mean", "second.spread", "second.w"})
    for (i64 k = 0; k < in_size; ++k)
      EXPECT_NEAR(then.parameter(name).doubles()[k], whole.parameter(name).doubles()[k], 1e-12) << name;
}

TEST(Observed, NormAndClippingDoNotSeeThem) {
  const auto model = [](double size) {
    return [=](Trace& t) {
      const Dim batch = t.batch("batch", row_count), in{"in", in_size};
      const Tensor x = t.input("x", {batch, in});
      t.observe(t.state("large", in), mean(x, batch) * size, [](Tensor, Tensor seen) { return seen; });
      return mean_of(square(contract(x, t.param("w", in), in) - t.input("y", batch)));
    };
  };
  Trainer small(compile(model(0), sgd({.lr = 0.1}))), large(compile(model(1e6), sgd({.lr = 0.1})));
  EXPECT_EQ(small.step(rows_of(0, f32)).grad_norm, large.step(rows_of(0, f32)).grad_norm);
  EXPECT_EQ(small.parameter("w").bytes, large.parameter("w").bytes);
  EXPECT_NE(small.parameter("large").bytes, large.parameter("large").bytes);
}

TEST(Observed, AStepThatIsNotFiniteLeavesThemAlone) {
  Trainer t(of_layout({}, f64, {.microbatches = 4}));
  t.step(rows_of(0, f64));
  const std::vector<double> before = t.parameter("first.mean").doubles();
  Batch bad = rows_of(1, f64);
  const double infinite = INFINITY;
  std::memcpy(bad.at("x").bytes.data(), &infinite, sizeof infinite);
  EXPECT_FALSE(t.step(bad).updated);
  EXPECT_EQ(t.parameter("first.mean").doubles(), before);
}

TEST(Observed, EvaluationAndFrozenOnesStay) {
  Trainer t(of_layout({}, f64)), frozen(of_layout({}, f64, {.microbatches = 4, .frozen = {"second.mean"}}));
  t.evaluate(rows_of(0, f64));
  EXPECT_EQ(t.parameter("first.mean").doubles(), std::vector<double>(in_size, 0));
  frozen.step(rows_of(0, f64));
  EXPECT_EQ(frozen.parameter("second.mean").doubles(), std::vector<double>(hidden_size, 0));
  EXPECT_NE(frozen.parameter("first.mean").doubles(), std::vector<double>(in_size, 0));
}

TEST(Observed, MistakesAreRefused) {
  const auto said = [](auto observe) {
    return refusal_of([&] {
      compile(
          [&](Trace& t) {
            const Dim batch = t.batch("batch", row_count), in{"in", in_size};
            const Tensor x = t.input("x", {batch, in});
            observe(t, x, batch, in);
            return mean_of(square(contract(x, t.param("w", in), in)));
          },
          sgd({.lr = 0.1}));
    });
  };
  const auto keep = [](Tensor value, Tensor) { return value; };
  EXPECT_EQ(said([&](Trace& t, Tensor x, const Dim&, const Dim& in) { t.observe(t.state("s", in), x, keep); }),
            "[observe] state s{in=4} has other dims than what is seen of it, x{batch=16 in=4}; hint: sum or mean over "
            "the others: mean(x, batch)");
  EXPECT_THAT(said([&](Trace& t, Tensor x, const Dim& batch, const Dim& in) {
                t.observe(t.bias("b", in), mean(x, batch), keep);
              }),
              testing::HasSubstr("is no state; hint: make it with t.state(name, dims)"));
  EXPECT_EQ(said([&](Trace& t, Tensor x, const Dim& batch, const Dim& in) {
              const Tensor s = t.state("s", in);
              t.observe(s, mean(x, batch), keep);
              t.observe(s, mean(x, batch), keep);
            }),
            "[observe] state 's' is observed twice; hint: add up what is seen before");
  EXPECT_THAT(said([&](Trace& t, Tensor x, const Dim& batch, const Dim& in) {
                t.observe(t.state("s", in), mean(x, batch), [](Tensor value, Tensor seen) {
                  return value * sum(seen, seen.dims()) * 0.0 + sum(value, value.dims());
                });
              }),
              testing::HasSubstr("update() of a state uses sum; hint: it goes element by element"));
}

// --- experts ---

ModelConfig with_select_bias() {
  ModelConfig c = tiny("mixtral", 2);
  c.experts = 8;
  c.select_bias = true;
  c.balance_rate = 0.25;  // large, so that choices change from step to step
  return c;
}

Compiled of_experts(const ModelConfig& c, const Parallel& p, DType dtype = f32) {
  return compile(make_model(c, row_count), adamw({.lr = 1e-2}), {.microbatches = 4, .dtype = dtype, .clip = 0.5}, p);
}

TEST(SelectBias, FollowsTheSignsOfLoads) {
  const ModelConfig c = with_select_bias();
  Trainer t(of_experts(c, {}));
  const Batch batch = random_batch(t.compiled(), 50);
  std::vector<double> expected(c.experts, 0);
  for (int step = 0; step < 3; ++step) {
    const std::vector<double> load = t.step(batch).lists.at("h.1.load");
    ASSERT_EQ(std::ssize(load), c.experts);
    double all = 0;
    for (const double x : load) all += x;
    EXPECT_EQ(all, double(row_count * c.context * c.top_k));
    for (i64 e = 0; e < c.experts; ++e) {
      const double short_of = all / double(c.experts) - load[e];
      expected[e] += 0.25 * (short_of > 0 ? 1 : short_of < 0 ? -1 : 0);
    }
    EXPECT_EQ(t.parameter("h.1.select").doubles(), expected);
  }
}

TEST(SelectBias, IsTheSameUnderEveryScheduleAndLayout) {
  const ModelConfig c = with_select_bias();
  const auto biases = [&](const Parallel& p) {
    Trainer t(of_experts(c, p, f64));
    const Batch batch = random_batch(t.compiled(), 50);
    std::vector<double> all;
    for (int i = 0; i < 3; ++i) {
      const StepResult r = t.step(batch);
      for (const char* layer : {"h.0.load", "h.1.load"})
        all.insert(all.end(), r.lists.at(layer).begin(), r.lists.at(layer).end());
    }
    for (const char* name : {"h.0.select", "h.1.select"})
      for (const double x : t.parameter(name).doubles()) all.push_back(x);
    return all;
  };
  const std::vector<double> serial = biases({});
  for (const Parallel& p : std::vector<Parallel>{{.mesh = {{"pipe", 2}}, .schedule = "zb-h1"},
                                                 {.names = {.data = 2}},
                                                 {.names = {.data = 2, .zero = 3}},
                                                 {.names = {.expert = 2}},
                                                 {.names = {.tensor = 2, .sequence = true}},
                                                 {.mesh = {{"pipe", 2}}, .names = {.data = 2, .expert = 2, .zero = 1}}})
    EXPECT_EQ(biases(p), serial) << p.mesh.str() << " data " << p.names.data << " zero " << p.names.zero;
}

TEST(SelectBias, StaysWithARateOfZero) {
  ModelConfig c = with_select_bias();
  c.balance_rate = 0;
  Trainer t(of_experts(c, {}));
  t.step(random_batch(t.compiled(), 50));
  EXPECT_EQ(t.parameter("h.1.select").doubles(), std::vector<double>(c.experts, 0));
  EXPECT_THROW((void)t.gradient("h.1.select"), Error);
}

TEST(RouterMetrics, ChoicesThatGetASlotAreCounted) {
  ModelConfig c = tiny("mixtral", 2);
  c.experts = 8;
  c.capacity = 0.5;  // half of the even share: at least half is dropped
  Trainer t(of_experts(c, {}));
  const StepResult r = t.step(random_batch(t.compiled(), 50));
  const double all = double(row_count * c.context * c.top_k);
  EXPECT_GT(r.metrics.at("h.0.taken"), 0);
  EXPECT_LE(r.metrics.at("h.0.taken"), 0.5 * all + double(row_count * c.experts));
  Trainer dp(of_experts(c, {.names = {.data = 2}}));
  EXPECT_EQ(dp.step(random_batch(dp.compiled(), 50)).metrics.at("h.0.taken"), r.metrics.at("h.0.taken"));
}

}  // namespace
}  // namespace stretto
