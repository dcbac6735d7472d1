// Exact training: to the last bit the same for every number of ranks along the batch and of microbatches.
#include <gmock/gmock.h>

#include "layouts/compare.h"
#include "stretto/compile/inner/exact.h"
#include "stretto/schedule/builders.h"

namespace stretto {
namespace {
using testing::HasSubstr;

constexpr i64 row_count = 32;

struct Result {
  std::vector<double> numbers;  // losses, norms, all terms and metrics, of every step and of an evaluation
  std::vector<std::pair<std::string, std::vector<std::byte>>> params;
  bool operator==(const Result&) const = default;
};

ModelConfig with_dropout(const std::string& family) {
  ModelConfig c = small(family);
  c.dropout = 0.1;
  return c;
}

Training exact(int microbatches, i64 leaf = 1) {
  return {.microbatches = microbatches, .seed = 3, .clip = 0.5, .exact = true, .leaf = leaf};
}

Result trained(const ModelConfig& config, const Training& training, const Parallel& p = {}, int steps = 2) {
  Trainer t(compile(make_model(config, row_count), adamw({.lr = 3e-3}), training, p));
  Result r;
  const auto note = [&](const StepResult& s) {
    r.numbers.insert(r.numbers.end(), {s.loss, s.grad_norm});
    for (const auto& [name, value] : s.metrics) r.numbers.push_back(value);
  };
  for (int i = 1; i <= steps; ++i) note(t.step(step_batch(t.compiled(), config.vocab, i)));
  note(t.evaluate(step_batch(t.compiled(), config.vocab, 9)));
  for (const CompiledParam& q : t.compiled().params) r.params.emplace_back(q.name, t.parameter(q.name).bytes);
  return r;
}

void expect_equal(const Result& a, const Result& b, const std::string& what) {
  EXPECT_EQ(a.numbers, b.numbers) << what;
  for (std::size_t i = 0; i < a.params.size(); ++i)
    EXPECT_TRUE(a.params[i] == b.params[i]) << what << ": " << a.params[i].first;
}

class Exact : public testing::TestWithParam<std::string> {};

TEST_P(Exact, AHeadInParts) {
  ModelConfig config = with_dropout(GetParam());
  config.head_parts = 2;
  expect_equal(trained(config, exact(1)), trained(config, exact(4), {.mesh = {{"pipe", 2}}, .names = {.data = 2}}),
               "pipe=2, data=2, 4 microbatches");
}

TEST_P(Exact, RanksAndMicrobatches) {
  const ModelConfig config = with_dropout(GetParam());
  const Result one = trained(config, exact(1));
  for (int data : {1, 2, 4})
    for (int microbatches : {1, 2, 4, 8})
      expect_equal(one, trained(config, exact(microbatches), {.names = {.data = data}}),
                   fmt::format("data={}, {} microbatches", data, microbatches));
  Training plain = exact(1);
  plain.exact = false;
  EXPECT_FALSE(trained(config, plain) == trained(config, plain, {.names = {.data = 2}})) << "the order of sums shows";
}

TEST_P(Exact, Pipelines) {
  const ModelConfig config = with_dropout(GetParam());
  const Result one = trained(config, exact(1));
  for (const char* schedule : {"1f1b", "zb-h1", "zb-v", "interleaved-1f1b", "dualpipe-v"})
    for (int data : {1, 2})
      expect_equal(one,
                   trained(config, exact(4), {.mesh = {{"pipe", 2}}, .names = {.data = data}, .schedule = schedule}),
                   fmt::format("{}, data={}", schedule, data));
  Parallel p{.mesh = {{"pipe", 2}}, .names = {.data = 4}};
  p.recompute = {Recompute::full};
  expect_equal(one, trained(config, exact(2), p), "recompute");
}

TEST_P(Exact, LargerLeaves) {
  const ModelConfig config = with_dropout(GetParam());
  const Result one = trained(config, exact(1, 4));
  for (int data : {2, 4})
    for (int microbatches : {1, 2})
      expect_equal(one, trained(config, exact(microbatches, 4), {.names = {.data = data}}),
                   fmt::format("data={}, {} microbatches", data, microbatches));
}

// A run goes on with other ranks, as if nothing had happened.
TEST_P(Exact, ChangesOfRanksInTheMiddle) {
  const ModelConfig config = with_dropout(GetParam());
  const auto compiled = [&](int data) {
    return compile(make_model(config, row_count), adamw({.lr = 3e-3}), exact(2), {.names = {.data = data}});
  };
  Trainer straight(compiled(1)), first(compiled(4)), then(compiled(2));
  const auto steps = [&](Trainer& t, int from, int to) {
    for (int i = from; i <= to; ++i) t.step(step_batch(t.compiled(), config.vocab, i));
  };
  steps(straight, 1, 4);
  steps(first, 1, 2);
  for (const CompiledParam& p : first.compiled().params) {
    then.set_parameter(p.name, first.parameter(p.name));
    for (const std::string& state : first.compiled().optimizer.state)
      then.set_state(p.name, state, first.state(p.name, state));
  }
  then.set_step(2);
  steps(then, 3, 4);
  EXPECT_EQ(straight.parameters_hash(), then.parameters_hash());
}

// With a fixed number of tensor ranks.
TEST_P(Exact, BesideTensor) {
  const ModelConfig config = with_dropout(GetParam());
  const Result one = trained(config, exact(1), {.names = {.tensor = 2}});
  expect_equal(one, trained(config, exact(4), {.names = {.data = 2, .tensor = 2}}), "data=2");
  expect_equal(one, trained(config, exact(2), {.mesh = {{"pipe", 2}}, .names = {.data = 4, .tensor = 2}}), "data=4");
}

// The same training as ever, but for the order of sums.
TEST_P(Exact, IsCloseToWhatItReplaces) {
  ModelConfig config = with_dropout(GetParam());
  Training plain = exact(4);
  plain.dtype = f64, plain.exact = false;
  Training same = plain;
  same.exact = true;
  const Result a = trained(config, plain), b = trained(config, same, {.names = {.data = 2}});
  ASSERT_EQ(a.numbers.size(), b.numbers.size());
  for (std::size_t i = 0; i < a.numbers.size(); ++i) EXPECT_NEAR(a.numbers[i], b.numbers[i], 1e-10);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Exact, testing::Values("gpt2", "llama", "mixtral"),
                         [](const auto& i) { return i.param; });

float tree(const std::vector<float>& x, std::size_t from, std::size_t n) {
  return n == 1 ? x[from] : tree(x, from, n / 2) + tree(x, from + n / 2, n / 2);
}

// Gradients, losses and metrics of numbers whose sum depends on the order: they are those of the balanced tree.
TEST(ExactSums, AreBalancedTrees) {
  constexpr int n = 16;
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = float(uniform_at(philox_key(7, "x"), i)) * std::pow(10.f, float(i % 5));
  float in_order = 0;
  for (float v : x) in_order += v;
  ASSERT_NE(in_order, tree(x, 0, n));
  const Model model = [](Trace& t) {
    const Dim batch = t.batch("batch", n);
    const Tensor x = t.input("x", {batch});
    t.metric("sum", sum(x, batch), Accumulate::sum);
    t.metric("mean", mean(x, batch), Accumulate::mean);
    t.metric("most", max(x, batch), Accumulate::max);
    t.metric("rows", x, Accumulate::concat);
    return mean_of(x * t.param("w", {}, {.init = ones}));
  };
  for (int data : {1, 2, 4, 8})
    for (int microbatches : {1, 2}) {
      Trainer t(
          compile(model, sgd({.lr = 0}), {.microbatches = microbatches, .exact = true}, {.names = {.data = data}}));
      const StepResult r = t.step({{"x", Array::of<float>(x, {n})}});
      EXPECT_EQ(t.gradient("w").as<float>()[0], tree(x, 0, n) / n) << data;
      EXPECT_EQ(r.loss, double(tree(x, 0, n)) / n) << data;
      EXPECT_EQ(r.metrics.at("sum"), double(tree(x, 0, n))) << data;
      EXPECT_EQ(r.metrics.at("mean"), double(tree(x, 0, n)) / n) << data;
      EXPECT_EQ(r.metrics.at("most"), double(*std::max_element(x.begin(), x.end())));
      EXPECT_EQ(r.lists.at("rows"), std::vector<double>(x.begin(), x.end())) << data;
    }
}

TEST(ExactSchedules, KeepOverlapGroupsTogether) {
  Schedule s = looped({.actors = 1, .microbatches = 2});
  s.rows[0].F(0, 0).F(0, 1).B(0, 0).B(0, 1);
  s.rows[0][1].overlap = s.rows[0][2].overlap = 5;
  EXPECT_EQ(on_leaves(s, 1), s);
  const Schedule leaves = on_leaves(s, 2);
  EXPECT_EQ(leaves.microbatches, 4);
  std::string cells;
  for (const Action& a : leaves.rows[0]) cells += fmt::format("{}{}", cell(a, 1), a.overlap ? "+ " : " ");
  EXPECT_EQ(cells, "0F0 0F1 0F2+ 0B0+ 0F3+ 0B1+ 0B2 0B3 ");
  EXPECT_NE(leaves.rows[0][2].overlap, leaves.rows[0][4].overlap);
}

std::string refusal(const ModelConfig& config, i64 rows, const Training& training, const Parallel& p) {
  try {
    compile(make_model(config, rows), adamw(), training, p);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::input);
    return e.what();
  }
  return "not refused";
}

TEST(ExactRefusals, SizesThatMakeNoTree) {
  const ModelConfig gpt2 = small("gpt2");
  EXPECT_EQ(
      refusal(gpt2, 12, exact(1), {}),
      "[exact] 12 rows per step are not a power of two of leaves of 1; hint: the nearest batch sizes are 8 and 16; "
      "or change train.leaf");
  EXPECT_EQ(refusal(gpt2, 12, exact(1, 3), {}), "not refused");
  EXPECT_EQ(
      refusal(gpt2, 8, exact(1, 4), {.names = {.data = 4}}),
      "[exact] 4 ranks cannot share the batch's 2 leaves of 4 rows; hint: use a power of two up to 2, or a smaller "
      "train.leaf");
  EXPECT_EQ(
      refusal(gpt2, 8, exact(4), {.names = {.data = 4}}),
      "[exact] 4 microbatches and 2 leaves of 1 rows on every rank: a microbatch is whole leaves; hint: use a power "
      "of two up to 2 for train.microbatches, or a smaller train.leaf");
  EXPECT_THAT(refusal(gpt2, 8, exact(1, 0), {}), HasSubstr("a leaf of 0 rows"));
}

TEST(ExactRefusals, WhatDependsOnTheNumberOfRanks) {
  const ModelConfig gpt2 = small("gpt2");
  EXPECT_THAT(refusal(gpt2, 8, exact(1), {.names = {.data = 2, .zero = 1}}),
              HasSubstr("[exact] optimizer state is cut over 'data'"));
  EXPECT_THAT(refusal(gpt2, 8, exact(1), {.names = {.data = 2, .tensor = 2, .sequence = true}}),
              HasSubstr("is added up over data,tensor at once"));
  EXPECT_THAT(refusal(gpt2, 8, exact(1), {.names = {.data = 2, .context = 2}}),
              HasSubstr("leave out sequence and context"));
  EXPECT_THAT(refusal(gpt2, 8, exact(4), {.mesh = {{"pipe", 2}}, .schedule = "dualpipe"}),
              HasSubstr("does not add gradients in ascending microbatch order"));
  EXPECT_THAT(refusal(gpt2, 8, exact(1), {.mesh = {{"a", 2}, {"b", 2}}, .layout = {{"batch", {"b", "a"}}}}),
              HasSubstr("hint: map it to 'a,b'"));
  try {
    compile(
        [](Trace& t) {
          const Dim batch = t.batch("batch", 4), in{"in", 3};
          const Dim one{"one", 1};
          const Tensor x = t.input("x", {batch, in}) * t.param("w", {in});
          return mean_of(x * sum(cast(expert_slots(top_k(x, in, one), batch, one, in, Dim{"room", 2}), f32), one));
        },
        sgd(), exact(1));
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("[exact] rows of a microbatch depend on each other. "));
  }
  ModelConfig mixtral = small("mixtral");
  EXPECT_THAT(refusal(mixtral, 8, exact(1), {.names = {.data = 2, .expert = 2}}),
              HasSubstr("dim 'experts' lies on axis 'expert', as the rows do"));
  mixtral.balance_pooled = true;
  for (int data : {1, 2})
    EXPECT_THAT(refusal(mixtral, 8, exact(1), {.names = {.data = data}}),
                HasSubstr("rows of a microbatch depend on each other"));
}

}  // namespace
}  // namespace stretto
