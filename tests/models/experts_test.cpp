// What a router does with a token, against the same written out in plain loops: whom it chooses, who is dropped, and
// what the penalties are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "stretto/models/family.h"
#include "stretto/train/trainer.h"

namespace stretto::experts {
namespace {

constexpr i64 row_count = 4, seq_size = 8, vocab_size = 21;

ModelConfig small() {
  return checked({.family = "mixtral",
                  .layers = 1,
                  .width = 12,
                  .heads = 2,
                  .ff = 10,
                  .context = seq_size,
                  .vocab = vocab_size,
                  .init_std = 0.4,
                  .experts = 4});
}

Batch some_batch() {
  std::mt19937 random(3);
  std::vector<std::int32_t> ids(row_count * seq_size), targets(ids.size());
  for (auto& x : ids) x = std::int32_t(random() % vocab_size);
  for (auto& x : targets) x = std::int32_t(random() % vocab_size);
  return {{"ids", Array::of<std::int32_t>(ids, {row_count, seq_size})},
          {"targets", Array::of<std::int32_t>(targets, {row_count, seq_size})}};
}

Trainer trainer_of(const ModelConfig& c, int microbatches = 1) {
  return Trainer(
      compile(make_model(c, row_count), sgd({.lr = 0}), {.microbatches = microbatches, .seed = 5, .dtype = f64}));
}

// The loss beyond that of the same model without any penalty.
double penalty(const ModelConfig& c, int microbatches = 1) {
  ModelConfig plain = c;
  plain.balance = plain.router_z = 0;
  Trainer with = trainer_of(c, microbatches), without = trainer_of(plain, microbatches);
  return with.step(some_batch()).loss - without.step(some_batch()).loss;
}

// What the router of the only layer says to every token: what goes into the first softmax (attention has its own).
std::vector<double> router_logits(const ModelConfig& config) {
  Trainer reader(compile(
      [c = config](Trace& t) {
        const Dim batch = t.batch("batch", row_count), seq = t.size("seq", seq_size);
        const Tensor ids = t.ids("ids", {batch, seq}), targets = t.ids("targets", {batch, seq});
        const Tensor out = logits_of(t, c, ids);
        const Graph& g = t.builder.graph;
        for (std::uint32_t i = 0; i < g.nodes.size(); ++i)
          if (!t.training() && g.nodes[i].op->name == "softmax")
            t.metric("router", Tensor{&t.builder, g.nodes[i].operands[0]}, Accumulate::concat);
        return cross_entropy(out, targets, Dim{"vocab", c.vocab});
      },
      sgd({.lr = 0}), {.seed = 5, .dtype = f64}));
  return reader.evaluate(some_batch()).lists.at("router");
}

struct Routed {
  std::vector<double> gates, chosen;  // [token][expert]
  double z = 0;                       // mean square of the logarithm of the sum
};
Routed routed(const ModelConfig& c) {
  const std::vector<double> logits = router_logits(c);
  Routed r;
  const std::size_t e = std::size_t(c.experts);
  EXPECT_EQ(logits.size(), std::size_t(row_count * seq_size) * e);
  for (std::size_t t = 0; t < logits.size() / e; ++t) {
    const double* l = logits.data() + t * e;
    double sum = 0;
    for (std::size_t i = 0; i < e; ++i) sum += std::exp(l[i]);
    r.z += std::pow(std::log(sum), 2) / double(row_count * seq_size);
    std::vector<std::size_t> order(e);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return l[a] > l[b]; });
    std::vector<double> chosen(e, 0);
    for (i64 k = 0; k < c.top_k; ++k) chosen[order[std::size_t(k)]] = 1;
    for (std::size_t i = 0; i < e; ++i) r.gates.push_back(std::exp(l[i]) / sum), r.chosen.push_back(chosen[i]);
  }
  return r;
}

// experts · Σ (part of the tokens that chose it) · (its mean gate), over a stretch of tokens.
double imbalance(const Routed& r, std::size_t experts, std::size_t first, std::size_t tokens) {
  double all = 0;
  for (std::size_t e = 0; e < experts; ++e) {
    double f = 0, p = 0;
    for (std::size_t t = first; t < first + tokens; ++t) f += r.chosen[t * experts + e], p += r.gates[t * experts + e];
    all += f / double(tokens) * p / double(tokens);
  }
  return double(experts) * all;
}

TEST(Experts, BalanceIsPerSequenceOrPooled) {
  ModelConfig c = small();
  c.balance = 0.7;
  const Routed r = routed(c);
  double per_sequence = 0;
  for (std::size_t row = 0; row < row_count; ++row)
    per_sequence += imbalance(r, 4, row * seq_size, seq_size) / row_count;
  EXPECT_NEAR(penalty(c), 0.7 * per_sequence, 1e-12);
  for (const int m : {2, 4}) EXPECT_NEAR(penalty(c, m), 0.7 * per_sequence, 1e-12) << "microbatches change nothing";
  c.balance_pooled = true;
  const double pooled = imbalance(r, 4, 0, row_count * seq_size);
  EXPECT_NEAR(penalty(c), 0.7 * pooled, 1e-12);
  EXPECT_GT(std::abs(pooled - per_sequence), 1e-3);
  // Pooled over what a microbatch holds: with one row each that is a sequence.
  EXPECT_NEAR(penalty(c, 4), 0.7 * per_sequence, 1e-12);
}

TEST(Experts, RouterZIsTheSquareOfTheLogarithmOfTheSum) {
  ModelConfig c = small();
  c.router_z = 0.3;
  EXPECT_NEAR(penalty(c), 0.3 * routed(c).z, 1e-12);
  EXPECT_NEAR(penalty(c, 2), 0.3 * routed(c).z, 1e-12);
  c.balance = 0.5;
  ModelConfig balance = c;
  balance.router_z = 0;
  EXPECT_NEAR(penalty(c), penalty(balance) + 0.3 * routed(c).z, 1e-12);
}

TEST(Experts, PenaltiesAreNoPartOfAnEvaluation) {
  ModelConfig c = small();
  const double plain = trainer_of(c).evaluate(some_batch()).loss;
  c.balance = 1, c.router_z = 1;
  EXPECT_EQ(trainer_of(c).evaluate(some_batch()).loss, plain);
}

// All tokens want experts 0 and 1: the others have gradients of zero, and nothing is divided by nothing.
TEST(Experts, WithoutTokensHaveNoGradient) {
  ModelConfig c = small();
  c.balance = 0.1, c.router_z = 0.1;
  for (const double capacity : {0.0, 0.5}) {
    c.capacity = capacity;
    Trainer t = trainer_of(c);
    const auto fill = [&](const char* name, auto value) {
      const Array a = t.parameter(name);
      std::vector<double> x(a.doubles().size());
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = value(i);
      t.set_parameter(name, Array::of<double>(x, a.sizes));
    };
    // Attention adds nothing and the embedding is positive, so that the router reads positive numbers.
    fill("wte", [](std::size_t i) { return 0.5 + 0.01 * double(i % 7); });
    fill("h.0.o", [](std::size_t) { return 0.0; });
    fill("h.0.router", [](std::size_t i) { return i % 4 == 0 ? 0.4 : i % 4 == 1 ? 0.3 : 0.0; });
    const StepResult r = t.step(some_batch());
    EXPECT_TRUE(std::isfinite(r.loss) && std::isfinite(r.grad_norm));
    for (const char* name : {"h.0.gate", "h.0.up", "h.0.down"}) {
      const std::vector<double> g = t.gradient(name).doubles();
      const std::size_t each = g.size() / 4;
      for (std::size_t e = 0; e < 4; ++e) {
        double most = 0;
        for (std::size_t i = e * each; i < (e + 1) * each; ++i) most = std::max(most, std::abs(g[i]));
        EXPECT_EQ(most > 0, e < 2) << name << " of expert " << e;
      }
    }
  }
}

// Room for one token per expert and sequence: the first one of a sequence is as it would be alone, and training is not
// what it is with room for all.
TEST(Experts, LateTokensAreDroppedWhileTraining) {
  ModelConfig c = small();
  Trainer all = trainer_of(c);
  c.capacity = 1e-9;  // rounded up to one slot
  Trainer one = trainer_of(c);
  EXPECT_EQ(one.evaluate(some_batch()).loss, all.evaluate(some_batch()).loss);
  EXPECT_GT(std::abs(one.step(some_batch()).loss - all.step(some_batch()).loss), 1e-3);
  c.capacity = 4;  // more slots than tokens
  Trainer many = trainer_of(c);
  EXPECT_EQ(many.step(some_batch()).loss, all.step(some_batch()).loss);
  Batch first = some_batch();
  std::vector<std::int32_t> targets(row_count * seq_size, -100);
  for (i64 row = 0; row < row_count; ++row) targets[std::size_t(row * seq_size)] = 7;
  first["targets"] = Array::of<std::int32_t>(targets, {row_count, seq_size});
  EXPECT_NEAR(one.step(first).loss, all.step(first).loss, 1e-13);
}

}  // namespace
}  // namespace stretto::experts
