// Everything a model may do across stages, and any valid order of actions on any placement: the bits of the serial run.
#include <gtest/gtest.h>

#include <random>

#include "support/property.h"
#include "support/small_models.h"

namespace stretto {
namespace {

// Eight pieces: metrics of all kinds from the first to the last; an input and labels that only the middle reads; a
// weight used twice in one piece, one used in pieces 1, 4 and 6, a skip over all of them; a frozen weight.
Loss everything(Trace& t) {
  const Dim batch = t.batch("batch", 120), in{"in", 6}, hidden{"hidden", 16}, out{"out", 3}, kinds{"kinds", 5};
  const Dim mid = hidden.like("mid");
  const Tensor x = t.input("x", {batch, in}), y = t.input("y", {batch, out}), side = t.input("side", {batch, hidden});
  const Tensor kind = t.ids("kind", {batch});
  const auto weight = [&](const char* name, bool trainable = true) {
    return t.param(name, {hidden, mid}, {.init = fan_in(hidden), .trainable = trainable});
  };
  const auto through = [&](Tensor h, Tensor w) { return tanh(rename(contract(h, w, hidden), mid, hidden)); };
  const Tensor first =
      boundary(gelu(contract(x, t.param("up", {in, hidden}, {.init = fan_in(in)}), in) + t.bias("up.bias", hidden)));
  t.metric("first.sum", sum(first, {batch, hidden}), Accumulate::sum);
  const Tensor shared = weight("shared"), twice = weight("twice"), frozen = weight("frozen", false);
  Tensor h = boundary(first + through(first, shared));
  t.metric("h.rows", sum(h, {hidden}), Accumulate::concat);
  h = boundary(h + through(through(h, twice), twice));
  h = boundary(h + through(h * side, weight("a")));
  const Loss aside =
      cross_entropy(contract(h, t.param("aside", {hidden, kinds}, {.init = fan_in(hidden)}), hidden), kind, kinds);
  t.metric("h.most", max(h, {batch, hidden}), Accumulate::max);
  h = boundary(h + through(h, shared));
  h = boundary(h + through(h, frozen));
  h = boundary(h + through(h, shared));
  const Tensor guess = contract(h + first, t.param("down", {hidden, out}, {.init = fan_in(hidden)}), hidden);
  t.metric("guess", mean(guess, {batch, out}), Accumulate::mean);
  return mean_of(square(guess - y)) + 0.1 * named("aside", aside);
}
constexpr int pieces = 8;

struct Coverage {
  u64 parameters = 0;
  std::vector<double> losses;
  std::map<std::string, double> metrics;
  std::map<std::string, std::vector<double>> lists;
  bool operator==(const Coverage&) const = default;
};

Coverage train(int microbatches, const Parallel& parallel) {
  Trainer trainer(compile(everything, adamw({.lr = 1e-2}), {.microbatches = microbatches, .clip = 0.5}, parallel));
  const Batch batch = random_batch(trainer.compiled(), 5);
  Coverage o;
  for (int i = 0; i < 3; ++i) {
    StepResult r = trainer.step(batch);
    o.losses.push_back(r.loss), o.losses.push_back(r.grad_norm);
    o.metrics = std::move(r.metrics), o.lists = std::move(r.lists);
  }
  o.parameters = trainer.parameters_hash();
  return o;
}

const Coverage& serial(int microbatches) {
  static std::map<int, Coverage> known;
  if (!known.contains(microbatches)) known[microbatches] = train(microbatches, {});
  return known[microbatches];
}

TEST(Coverage, EveryScheduleOnEveryCut) {
  for (const auto& [schedule, actors] : std::vector<std::pair<const char*, int>>{{"1f1b", 2},
                                                                                 {"1f1b", 8},
                                                                                 {"gpipe", 3},
                                                                                 {"zb-h1", 4},
                                                                                 {"zb-h1", 8},
                                                                                 {"zb-v", 3},
                                                                                 {"zb-v", 4},
                                                                                 {"interleaved-1f1b", 4}})
    EXPECT_EQ(train(12, {.mesh = {{"pipe", actors}}, .schedule = schedule}), serial(12)) << schedule << actors;
  for (Recompute r : {Recompute::full, Recompute::selective})
    EXPECT_EQ(train(12, {.mesh = {{"pipe", 4}}, .schedule = "zb-h1", .recompute = {r}}), serial(12)) << name_of(r);
}

TEST(Coverage, MetricsAreThoseOfTheWholeBatch) {
  const Coverage one = serial(1), many = train(6, {.mesh = {{"pipe", 4}}, .schedule = "zb-h1"});
  EXPECT_NEAR(many.metrics.at("first.sum"), one.metrics.at("first.sum"), 1e-3);
  EXPECT_NEAR(many.metrics.at("h.most"), one.metrics.at("h.most"), 1e-4);
  EXPECT_NEAR(many.metrics.at("guess"), one.metrics.at("guess"), 1e-5);
  EXPECT_NEAR(many.metrics.at("aside"), one.metrics.at("aside"), 1e-5);
  ASSERT_EQ(many.lists.at("h.rows").size(), 120u);
  for (std::size_t i = 0; i < 120; ++i) EXPECT_NEAR(many.lists.at("h.rows")[i], one.lists.at("h.rows")[i], 1e-4);
}

TEST(Coverage, FrozenParametersStayAsTheyWere) {
  Trainer t(compile(everything, adamw({.lr = 1e-2}), {.microbatches = 4}, {.mesh = {{"pipe", 4}}}));
  const auto numbers = [&](const char* name) {
    const Array a = t.parameter(name);
    return std::vector<float>(a.as<float>().begin(), a.as<float>().end());
  };
  const std::vector<float> frozen = numbers("frozen"), shared = numbers("shared");
  t.step(random_batch(t.compiled(), 5));
  EXPECT_EQ(numbers("frozen"), frozen);
  EXPECT_NE(numbers("shared"), shared);
}

// Actions drawn one by one among those whose inputs are there; weight gradients of a stage in ascending order.
Schedule random_order(int stages, int actors, int microbatches, bool split, std::mt19937& rng) {
  Schedule s{.name = "random", .stages = stages, .microbatches = microbatches, .actor_of = {{}}, .rows = {}};
  s.rows.resize(std::size_t(actors));
  for (int stage = 0; stage < stages; ++stage) s.actor_of[down_pipe].push_back(ActorId(rng() % unsigned(actors)));
  std::vector<Action> open;
  for (int stage = 0; stage < stages; ++stage)
    for (int m = 0; m < microbatches; ++m)
      for (Phase phase : split ? std::vector{Phase::F, Phase::I, Phase::W} : std::vector{Phase::F, Phase::B})
        open.push_back({.phase = phase, .stage = StageId(stage), .microbatch = MicrobatchId(m)});
  std::set<std::tuple<Phase, int, int>> done;
  const auto is_done = [&](Phase phase, int stage, int m) { return done.contains({phase, stage, m}); };
  const Phase back = split ? Phase::I : Phase::B;
  const auto ready = [&](const Action& a) {
    const int stage = a.stage.value, m = int(a.microbatch.value);
    if (a.phase == Phase::F) return stage == 0 || is_done(Phase::F, stage - 1, m);
    if (a.phase != Phase::I && m > 0 && !is_done(a.phase, stage, m - 1)) return false;
    if (a.phase == Phase::W) return is_done(Phase::I, stage, m);
    return is_done(Phase::F, stage, m) && (stage + 1 == stages || is_done(back, stage + 1, m));
  };
  while (!open.empty()) {
    std::vector<std::size_t> can;
    for (std::size_t i = 0; i < open.size(); ++i)
      if (ready(open[i])) can.push_back(i);
    const std::size_t choice = can[rng() % can.size()];
    const Action a = open[choice];
    s.rows[s.actor_of[down_pipe][a.stage]].push_back(a);
    done.insert({a.phase, a.stage.value, int(a.microbatch.value)});
    open.erase(open.begin() + std::ptrdiff_t(choice));
  }
  return s;
}

TEST(Coverage, RandomOrdersOnRandomPlacementsAreBitEqualToSerial) {
  EXPECT_TRUE(holds("any valid order, any placement, any cut: the serial bits", 150, [] {
    const int stages = *rc::gen::inRange(1, pieces + 1), actors = *rc::gen::inRange(1, 5);
    const int microbatches = *rc::gen::inRange(1, 7);
    const bool split = *rc::gen::arbitrary<bool>();
    std::mt19937 rng(*rc::gen::arbitrary<unsigned>());
    const Schedule s = random_order(stages, actors, microbatches, split, rng);
    std::vector<int> cuts(std::size_t(stages), 1);
    for (int extra = pieces - stages; extra > 0; --extra) ++cuts[rng() % cuts.size()];
    const Coverage o = train(microbatches, {.mesh = {{"pipe", actors}}, .schedule = s, .stages = cuts});
    if (o != serial(microbatches)) RC_FAIL(s.str());
  }));
}

}  // namespace
}  // namespace stretto
