// Models that are unusual but allowed, trained and evaluated serially and in parallel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "stretto/schedule/builders.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

std::vector<float> waves(i64 n) {
  std::vector<float> v;
  for (i64 i = 0; i < n; ++i) v.push_back(std::sin(1.3f * float(i)));
  return v;
}
Batch rows(i64 n, i64 each) { return {{"x", Array::of<float>(waves(n * each), {n, each})}}; }

Loss scaled_by_an_input(Trace& t) {
  const Dim batch = t.batch("batch", 8), in{"in", 6};
  const Tensor x = t.input("x", {batch, in}) * t.input("s", {});
  return mean_of(square(contract(x, t.param("w", {in}, {.init = ones}), in)));
}

TEST(Programs, InputWithoutDimsIsTheSameInEveryMicrobatch) {
  const std::vector<float> two{2};
  Batch batch = rows(8, 6);
  batch["s"] = Array::of<float>(two, {});
  const auto loss = [&](int microbatches, int data) {
    const Training training{.microbatches = microbatches};
    Trainer t(compile(scaled_by_an_input, sgd({.lr = 0.1}), training, {.names = {.data = data}}));
    t.step(batch);
    return t.step(batch).loss + t.evaluate(batch).loss;
  };
  const double alone = loss(1, 1);
  EXPECT_NEAR(loss(2, 1), alone, 1e-5);
  EXPECT_NEAR(loss(4, 1), alone, 1e-5);
  EXPECT_NEAR(loss(2, 2), alone, 1e-5);
}

Loss with_something_unused(Trace& t) {
  const Dim batch = t.batch("batch", 8), in{"in", 6};
  t.param("unused", {in}, {.init = ones, .trainable = false});
  const Tensor x = boundary(t.input("x", {batch, in}) * t.param("v", {in}, {.init = ones}));
  return mean_of(square(contract(x, t.param("w", {in}, {.init = ones}), in)));
}

TEST(Programs, FrozenParameterThatNobodyReadsCanBeReadAndSet) {
  for (const Parallel& p :
       {Parallel{}, Parallel{.mesh = {{"pipe", 2}}}, Parallel{.names = {.data = 2}},
        Parallel{.names = {.data = 2, .zero = 3}}, Parallel{.mesh = {{"pipe", 2}}, .schedule = "chimera"}}) {
    Trainer t(compile(with_something_unused, sgd({.lr = 0.1}), {.microbatches = 2}, p));
    t.step(rows(8, 6));
    EXPECT_EQ(t.parameter("unused").as<float>()[5], 1.f);
    const std::vector<float> set{1, 2, 3, 4, 5, 6};
    const u64 before = t.parameters_hash();
    t.set_parameter("unused", Array::of<float>(set, {6}));
    EXPECT_EQ(t.parameter("unused").as<float>()[4], 5.f);
    EXPECT_NE(t.parameters_hash(), before);
    EXPECT_GT(t.evaluate(rows(8, 6)).loss, 0);
  }
}

// The second weight is only read under other names, after the first boundary; so is a product of two. `plain` reads
// the same numbers without views.
Loss renamed_weights(Trace& t, bool plain) {
  const Dim batch = t.batch("batch", 8), in{"in", 6}, h{"h", 6}, g{"g", 6};
  const Tensor x = t.input("x", {batch, in});
  const Tensor a = boundary(tanh(contract(x, t.param("w0", {in, h}, {.init = normal(0.5)}), in)));
  const Tensor w1 = t.param("w1", {in, g}, {.init = normal(0.5)});
  const Tensor b = plain ? contract(rename(a, h, in), w1, in) : contract(a, rename(w1, in, h), h);
  const Tensor gain = t.param("gain", {g}, {.init = ones});
  const Tensor c = boundary(b * (gain * 2.0));
  const Tensor back = plain ? contract(c, w1, g) : rename(contract(c, rename(w1, in, h), g), h, in);
  return mean_of(square(back)) + 0.01 * named("decay", mean_of(square(gain)));
}

TEST(Programs, ViewsOfParametersLieWhereTheyAreRead) {
  const auto train = [&](bool plain, const Parallel& p) {
    Trainer t(
        compile([=](Trace& trace) { return renamed_weights(trace, plain); }, sgd({.lr = 0.1}), {.microbatches = 4}, p));
    t.step(rows(8, 6));
    const StepResult r = t.step(rows(8, 6));
    return std::vector<double>{r.loss, r.grad_norm, t.evaluate(rows(8, 6)).loss};
  };
  const std::vector<double> want = train(true, {});
  std::vector<Parallel> all{{}, {.mesh = {{"pipe", 2}}}, {.mesh = {{"pipe", 3}}, .schedule = "zb-h1"}};
  for (int zero = 0; zero < 4; ++zero) {
    all.push_back({.names = {.data = 2, .zero = zero}});
    all.push_back({.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = zero}, .schedule = "zb-h1"});
  }
  all.push_back({.mesh = {{"pipe", 3}}, .recompute = {Recompute::full}});
  for (const Parallel& p : all) {
    const std::vector<double> got = train(false, p);
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5 * std::abs(want[i])) << i;
  }
}

// A piece's parameters stay with it: nothing but activations goes from one to the next.
TEST(Programs, GradientOfAViewStaysInItsPiece) {
  const Compiled c = compile([](Trace& t) { return renamed_weights(t, false); }, sgd({}), {.microbatches = 4},
                             {.mesh = {{"pipe", 3}}});
  std::vector<std::pair<std::string, int>> at;
  for (const Accumulator& a : c.program->step->accumulators) at.push_back({c.params[a.param].name, a.piece.value});
  const std::vector<std::pair<std::string, int>> want{{"w0", 0}, {"w1", 1}, {"w1", 2}, {"gain", 1}};
  EXPECT_EQ(at, want);
}

// Two dims of one size change their names while either, or both, are split.
Loss transposed(Trace& t) {
  const Dim batch = t.batch("batch", 8), in{"in", 4}, s{"s", 4}, m{"m", 4};
  const Tensor w = t.param("w", {in, s, m}, {.init = normal(0.5)});
  const Tensor a = tanh(contract(t.input("x", {batch, in}), w, in));
  return mean_of(square(a * t.param("g", {m}, {.init = ones}) - 0.5 * rename(a, {{s, m}, {m, s}})));
}

TEST(Programs, SplitDimsCanChangeTheirNames) {
  const auto train = [](const Parallel& p) {
    Trainer t(compile(transposed, sgd({.lr = 0.1}), {.microbatches = 2}, p));
    t.step(rows(8, 4));
    const StepResult r = t.step(rows(8, 4));
    return std::vector<double>{r.loss, r.grad_norm, t.evaluate(rows(8, 4)).loss};
  };
  const std::vector<double> want = train({});
  const Mesh one{{"q", 2}}, two{{"q", 2}, {"r", 2}};
  for (const Parallel& p :
       {Parallel{.mesh = one, .layout = {{"m", "q"}}}, Parallel{.mesh = one, .layout = {{"s", "q"}}},
        Parallel{.mesh = two, .layout = {{"s", "q"}, {"m", "r"}}},
        Parallel{.mesh = two, .layout = {{"m", {"q", "r"}}}}}) {
    const std::vector<double> got = train(p);
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5 * std::abs(want[i])) << i;
  }
}

Loss classified(Trace& t) {
  const Dim batch = t.batch("batch", 8), in{"in", 4}, vocab{"vocab", 6};
  const Tensor logits = contract(t.input("x", {batch, in}), t.param("w", {in, vocab}), in);
  return cross_entropy(logits, t.ids("y", {batch}), vocab);
}

TEST(Programs, LabelOfNoClassIsRefusedAlsoWhenClassesAreSplit) {
  for (const std::int32_t wrong : {6, -1}) {
    const std::vector<std::int32_t> y{0, 1, -100, 5, 2, wrong, 3, 4};
    Batch batch = rows(8, 4);
    batch["y"] = Array::of<std::int32_t>(y, {8});
    const auto says = [&](const Parallel& p) {
      Compiled c = compile(classified, sgd({.lr = 0.1}), {.microbatches = 2}, p);
      EXPECT_THAT(refusal_of([&] { Trainer(c).step(batch); }), testing::HasSubstr("batch, input 'y' at [5]"));
      c.ids.clear();  // as if the model had computed them
      return refusal_of([&] { Trainer(c).step(batch); });
    };
    const std::string why = fmt::format(
        "label {} is outside of dim 'vocab', which has 6 classes; hint: positions without a label hold -100", wrong);
    EXPECT_THAT(says({}), testing::HasSubstr(why));
    EXPECT_THAT(says({.mesh = {{"q", 2}}, .layout = {{"vocab", "q"}}}), testing::HasSubstr(why));
  }
}

Loss small_pipeline(Trace& t) {
  const Dim batch = t.batch("batch", 8), in{"in", 6}, h{"h", 6};
  const Tensor a =
      boundary(tanh(contract(t.input("x", {batch, in}), t.param("w", {in, h}, {.init = normal(0.5)}), in)));
  const Tensor b = boundary(a * t.param("g", {h}, {.init = ones}));
  const Tensor c = boundary(tanh(b));
  return mean_of(square(contract(c, t.param("v", {h}, {.init = normal(0.5)}), h)));
}

TEST(Programs, EvaluationOfOtherBatchSizesUnderEverySchedule) {
  Trainer serial(compile(small_pipeline, sgd({.lr = 0.1}), {.microbatches = 4}));
  const double want4 = serial.evaluate(rows(4, 6), {{"batch", 4}}).loss, want = serial.evaluate(rows(8, 6)).loss;
  for (const char* schedule : {"1f1b", "zb-v", "chimera", "dualpipe", "dualpipe-v", "interleaved-1f1b", "looped-bfs"}) {
    Trainer t(
        compile(small_pipeline, sgd({.lr = 0.1}), {.microbatches = 4}, {.mesh = {{"pipe", 2}}, .schedule = schedule}));
    EXPECT_NEAR(t.evaluate(rows(4, 6), {{"batch", 4}}).loss, want4, 1e-7) << schedule;
    EXPECT_NEAR(t.evaluate(rows(8, 6)).loss, want, 1e-7) << schedule;
  }
}

TEST(Programs, PipeWithoutMicrobatchesIsRefused) {
  EXPECT_EQ(refusal_of([] {
              compile(small_pipeline, sgd({}), {.microbatches = 1}, {.mesh = {{"pipe", 2}}, .schedule = "chimera"});
            }),
            "[schedule] 'chimera' has 2 pipes, and pipe 0 gets none of the 1 microbatches; hint: use at least 2 "
            "microbatches, or a schedule of one pipe, e.g. 1f1b");
}

// A file says how many microbatches there are; exact training plays it with several leaves for each.
TEST(Programs, ExactTrainingByAScheduleOfItsOwnIsEvaluated) {
  const Schedule s = build_schedule("1f1b", {.actors = 2, .microbatches = 2});
  const Training exact{.microbatches = 2, .exact = true};
  Trainer serial(compile(small_pipeline, sgd({.lr = 0.1}), exact));
  Trainer t(compile(small_pipeline, sgd({.lr = 0.1}), exact, {.mesh = {{"pipe", 2}}, .schedule = s}));
  serial.step(rows(8, 6));
  t.step(rows(8, 6));
  EXPECT_EQ(t.evaluate(rows(8, 6)).loss, serial.evaluate(rows(8, 6)).loss);
  EXPECT_EQ(t.evaluate(rows(4, 6), {{"batch", 4}}).loss, serial.evaluate(rows(4, 6), {{"batch", 4}}).loss);
}

}  // namespace
}  // namespace stretto
