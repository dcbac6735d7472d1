// Actors that wait, fail, hang, are delayed, or only pretend to work.
#include "stretto/runtime/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "stretto/runtime/measure.h"
#include "stretto/schedule/builders.h"
#include "support/child.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

using testing::HasSubstr;

Trainer trainer(const Parallel& parallel, RunOptions options = {}, int microbatches = 4, Training training = {}) {
  training.microbatches = microbatches;
  return Trainer(compile(make_model(tiny("gpt2", 4), 24), adamw({.lr = 1e-3}), training, parallel), std::move(options));
}

u64 bits(const Parallel& parallel, RunOptions options = {}) {
  Trainer t = trainer(parallel, std::move(options));
  const Batch batch = random_batch(t.compiled(), 50);
  for (int i = 0; i < 2; ++i) t.step(batch);
  return t.parameters_hash();
}

TEST(Engine, DelaysDoNotChangeTheBits) {
  const u64 serial = bits({});
  const int runs = std::getenv("STRETTO_LONG") ? 100 : 25;
  const char* names[] = {"1f1b", "zb-h1", "zb-v", "interleaved-1f1b", "dualpipe-v"};
  for (int i = 0; i < runs; ++i)
    EXPECT_EQ(bits({.mesh = {{"pipe", 2}}, .schedule = names[i % 5]}, {.jitter = 2e-4, .jitter_seed = u64(i)}), serial)
        << names[i % 5] << " with seed " << i;
}

TEST(Engine, EmulatedLinksDelayMessagesAndKeepTheBits) {
  const Parallel parallel{.mesh = {{"pipe", 2}}, .schedule = "1f1b"};
  EXPECT_EQ(bits(parallel, {.link = Link{2e-3, 1e9}}), bits(parallel));
  Trainer t = trainer(parallel, {.link = Link{5e-3, 1e9}});
  const Batch batch = random_batch(t.compiled(), 50);
  // Every microbatch's activation and gradient cross the link; the first and the last of them cannot be hidden.
  EXPECT_GT(t.step(batch).seconds, 1e-2);
}

TEST(Engine, RanksThatCannotBeStartedEndTheOthers) {
  if (!test::can_become_nobody()) GTEST_SKIP() << "only root can become a user without rights";
  for (const rlim_t most : {3, 5}) {
    const test::Ended e = test::in_child([&] {
      test::become_nobody();
      test::limit(RLIMIT_NPROC, most);
      trainer({.mesh = {{"pipe", 8}}, .schedule = "gpipe"}, {.timeout = 60});
    });
    EXPECT_EQ(e.code, 99) << e.error;  // as an exception
    EXPECT_THAT(e.error, testing::ContainsRegex("\\[threads\\] thread [2-5] of 8 cannot be made: .*ulimit -u"));
  }
}

// Loses one message of the second step.
class Lossy : public Transport {
 public:
  explicit Lossy(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}
  void send(TransferId transfer, std::uint32_t round) override {
    if (transfer == TransferId(2) && round == 2) return;
    inner_->send(transfer, round);
  }
  double receive(TransferId transfer, std::uint32_t round) override { return inner_->receive(transfer, round); }
  void stop() noexcept override { inner_->stop(); }

 private:
  std::unique_ptr<Transport> inner_;
};

TEST(Watchdog, NamesWhoWaitsForALostMessage) {
  Trainer t = trainer({.mesh = {{"pipe", 3}}},
                      {.timeout = 0.2, .wrap = [](auto inner) { return std::make_unique<Lossy>(std::move(inner)); }});
  const Batch batch = random_batch(t.compiled(), 50);
  t.step(batch);
  try {
    t.step(batch);
    FAIL() << "the lost message was not missed";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 3);
    EXPECT_THAT(e.what(), HasSubstr("[watchdog] nothing has moved for 0.2 s in step 2: actor 0 waits to receive"));
    EXPECT_THAT(e.what(), HasSubstr("actor 1 waits to receive value"));
    EXPECT_THAT(e.what(), HasSubstr("hint: if the work itself takes that long, raise parallel.timeout"));
  }
  EXPECT_THROW(t.step(batch), Error);  // and stays stopped
}

TEST(Watchdog, LeavesSlowButMovingRunsAlone) {
  Trainer t = trainer({.mesh = {{"pipe", 3}}}, {.timeout = 0.3, .link = Link{0.05, 1e9}});
  const Batch batch = random_batch(t.compiled(), 50);
  EXPECT_GT(t.step(batch).seconds, 0.3);
}

TEST(Engine, StepsThatAreNotFiniteLeaveAllCopiesAsTheyAre) {
  for (const bool skip : {true, false}) {
    Trainer t = trainer({.mesh = {{"pipe", 3}}, .schedule = "zb-h1"}, {}, 4, {.skip_nonfinite = skip});
    const Batch batch = random_batch(t.compiled(), 50);
    Array broken = t.parameter(t.compiled().params.back().name);
    const Array good = broken;
    reinterpret_cast<float*>(broken.bytes.data())[0] = NAN;
    t.set_parameter(t.compiled().params.back().name, broken);
    const u64 before = t.parameters_hash();
    const StepResult r = t.step(batch);
    EXPECT_FALSE(std::isfinite(r.loss));
    EXPECT_FALSE(std::isfinite(r.grad_norm));
    EXPECT_EQ(r.updated, !skip);
    EXPECT_EQ(t.parameters_hash() == before, skip);
    if (!skip) continue;
    t.set_parameter(t.compiled().params.back().name, good);
    const StepResult next = t.step(batch);
    EXPECT_TRUE(std::isfinite(next.loss));
    EXPECT_TRUE(next.updated);
    EXPECT_NE(t.parameters_hash(), before);
  }
}

// Kernels do not throw from where they run: the step goes on to its end, then it is refused, and nothing was updated.
TEST(Engine, AnIdOutsideOfTheVocabularyIsNamedWithItsPlaceAndLeavesTheParametersAlone) {
  for (const Parallel& p : {Parallel{}, {.mesh = {{"pipe", 2}}}, {.mesh = {{"pipe", 2}}, .names = {.tensor = 2}}}) {
    Compiled c = trainer(p).compiled();
    c.ids.clear();  // nobody looks before the step begins, as at ids that the model computes
    Trainer t(std::move(c));
    Batch batch = random_batch(t.compiled(), 50);
    t.step(batch);
    const u64 before = t.parameters_hash();
    auto* ids = reinterpret_cast<std::int32_t*>(batch.at("ids").bytes.data());
    ids[batch.at("ids").elements() - 1] = 4711;  // the last row: the last microbatch
    const std::string why = refusal_of([&] { t.step(batch); });
    EXPECT_THAT(why, HasSubstr("[embedding] id 4711 is outside of dim 'vocab', which has 50 rows; hint: compare"));
    EXPECT_THAT(why, HasSubstr("step 2, actor 0"));
    EXPECT_THAT(why, HasSubstr("stage 0, F of piece 0, microbatch 3, embedding"));
    EXPECT_EQ(t.parameters_hash(), before);
    EXPECT_EQ(refusal_of([&] { t.step(batch); }), why);  // and stays stopped
  }
}

// The loss overflows, its gradient does not: only the actor that has the loss can see it.
TEST(Engine, AnInfiniteLossWithFiniteGradientsIsSeenByAllActors) {
  const Model model = [](Trace& t) {
    const Dim batch = t.batch("batch", 4), in{"in", 2}, out{"out", 2};
    const Tensor h = boundary(contract(t.input("x", {batch, in}), t.param("w", {in, out}), in) * 1e25f);
    return mean_of(square(h + t.bias("b", out)));
  };
  Trainer t(compile(model, sgd({.lr = 1e-3}), {.microbatches = 2}, {.mesh = {{"pipe", 2}}}));
  const std::vector<float> x(8, 1.0f);
  const Batch batch{{"x", Array::of<float>(x, {4, 2})}};
  const u64 before = t.parameters_hash();
  const StepResult r = t.step(batch);
  EXPECT_TRUE(std::isinf(r.loss)) << r.loss;
  EXPECT_FALSE(r.updated);
  EXPECT_EQ(t.parameters_hash(), before);
}

// Sums of gradients, gathers and reduce-scatters go on beside tasks, and have a lane of their own.
TEST(Timeline, ShowsCollectivesThatGoOnBesideTasks) {
  for (int zero : {0, 3}) {
    const Compiled c =
        compile(make_model({.family = "gpt2", .layers = 1, .width = 16, .heads = 2, .context = 8, .vocab = 32}, 4),
                sgd(), {.microbatches = 2}, {.names = {.data = 2, .zero = zero}});
    Trainer t(c);
    Timeline m;
    t.step(random_batch(c, 32), &m);
    std::map<std::string, int> seen;
    for (const Span& s : m.spans)
      if (s.lane == Lane::collective && s.coordinate == 1) {
        EXPECT_LE(s.start, s.end) << s.label;
        ++seen[s.label];
      }
    if (zero == 0) {
      EXPECT_EQ(seen["sum of gradients of stage 0"], int(c.program->step->buckets.size()));
    } else {
      EXPECT_EQ(seen["gather of parameters of piece 1"], 4);  // forward and backward of two microbatches
      EXPECT_EQ(seen["reduce-scatter of gradients of piece 1"], 2);
    }
  }
}

// With collectives in place a rank's waiting is within its tasks.
TEST(Timeline, IsOfAllRanksAndSaysHowIdleTheyAre) {
  Trainer t = trainer({.mesh = {{"pipe", 2}}, .names = {.tensor = 2}, .overlap = Overlap::none});
  Timeline line;
  const StepResult r = t.step(random_batch(t.compiled(), 50), &line);
  EXPECT_EQ(line.ranks, 2);
  std::map<std::pair<int, int>, int> actions, messages;
  double waiting = 0;
  for (const Span& s : line.spans) {
    actions[{s.actor, s.coordinate}] += s.action.has_value();
    messages[{s.actor, s.coordinate}] += s.lane == Lane::message;
    waiting += s.waiting;
    EXPECT_LE(s.waiting, s.end - s.start);
    EXPECT_LE(s.start, s.end) << s.label;
  }
  for (const auto& rank : {std::pair(0, 0), {0, 1}, {1, 0}, {1, 1}}) {
    EXPECT_GE(actions[rank], 2 * t.compiled().training.microbatches);
    EXPECT_GT(messages[rank], 0);
  }
  if (t.engine().worker(0).device().calls_wait()) {  // else lanes wait, beside their tasks
    EXPECT_GT(waiting, 0);
  }
  // The step says the same: what it took a rank, less its waiting. Between two tasks there is a little of that.
  const std::vector<double> busy = line.busy_ranks();
  ASSERT_EQ(r.worked.size(), 4u);
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_LE(busy[rank], r.worked[rank] + 1e-6) << rank;
}

TEST(Timeline, OfAMeasuredStepHoldsEveryActionOnce) {
  for (const char* name : {"1f1b", "zb-v", "dualpipe-v"}) {
    Trainer t = trainer({.mesh = {{"pipe", 2}}, .schedule = name});
    const Batch batch = random_batch(t.compiled(), 50);
    Timeline line;
    t.step(batch, &line);
    EXPECT_EQ(line.actors, 2);
    const Schedule& s = t.compiled().program->schedule;
    for (int a = 0; a < 2; ++a) {
      std::set<std::string> seen;
      double last = 0, worked = 0;
      for (const Span& x : line.spans) {
        if (x.actor != a || x.lane != Lane::compute) continue;
        worked += x.end - x.start;
        EXPECT_LE(x.start, x.end);
        EXPECT_GE(x.start, last);
        last = x.end;
        if (x.action) seen.insert(cell(*x.action, s.stages));
      }
      // Stage 0 has nothing below it that needs a gradient when it is one piece: its I may be empty.
      for (const Action& action : s.rows[a]) {
        if (action.phase == Phase::I) continue;
        EXPECT_TRUE(seen.contains(cell(action, s.stages))) << name << ' ' << cell(action, s.stages);
      }
      EXPECT_NEAR(line.busy(a), worked, 1e-9);  // norm and update are work too
      EXPECT_GE(line.peak(a), 0.5);
      EXPECT_NEAR(line.memory[std::size_t(a)].back().second, 0, 1e-9);
    }
    EXPECT_GT(line.busy(0), 0);
  }
}

TEST(Emulated, ActorsTakeTheTimesTheyAreGiven) {
  const Parallel parallel{.mesh = {{"pipe", 2}}, .schedule = "1f1b"};
  Trainer t = trainer(parallel, {.device = DeviceKind::emulated, .times = Times{.F = 4e-3, .I = 4e-3, .W = 4e-3}});
  const Batch batch = random_batch(t.compiled(), 50);
  t.step(batch);
  EXPECT_GE(t.step(batch).seconds, (4 + 1) * 12e-3 - 8e-3);  // m + p - 1 slots, but for the last gradient's message
}

}  // namespace
}  // namespace stretto
