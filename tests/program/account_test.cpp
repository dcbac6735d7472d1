// Where the bytes go: the plan against a count by hand, and against what the schedules promise.
#include "stretto/program/account.h"

#include <gmock/gmock.h>

#include "stretto/compile/compile.h"
#include "stretto/simulate/simulate.h"
#include "stretto/step/keeps.h"
#include "support/small_models.h"

namespace stretto {
namespace {

using testing::HasSubstr;
using Kind = Holding::Kind;

// Per actor, the most that rows keep, from sizes per stage alone: F adds what I and W read, I frees what it is the last
// to read and adds what it made for W, W frees the rest. B is both at once.
std::vector<u64> count_by_hand(const Schedule& s, const IdVector<StageId, StageKeeps>& sizes) {
  std::vector<u64> peaks;
  for (const Row& row : s.rows) {
    u64 now = 0, most = 0;
    for (const Action& a : row) {
      const StageKeeps& k = sizes[a.stage];
      if (a.phase == Phase::F) now += k.until_i + k.until_w;
      if (a.phase == Phase::I) now = now - k.until_i + k.for_w;
      if (a.phase == Phase::W) now -= k.until_w + k.for_w;
      if (a.phase == Phase::B) now -= k.until_i + k.until_w;
      most = std::max(most, now);
    }
    EXPECT_EQ(now, 0u);
    peaks.push_back(most);
  }
  return peaks;
}

// Live activations times size, per actor: from F until W or B a microbatch holds its stage's size, whether before I or
// after it.
std::vector<double> theory(const Schedule& s, const IdVector<StageId, StageKeeps>& sizes) {
  SimulateOptions o;
  for (const StageKeeps& k : sizes) {
    o.stages.push_back({});
    o.stages.back().activation_bytes = double(k.until_w + std::max(k.until_i, k.for_w));
  }
  return simulate(s, o).peak_bytes;
}

Compiled compiled(const ModelConfig& c, i64 batch, int microbatches, const std::string& schedule, int actors = 2,
                  std::vector<Recompute> recompute = {}, std::vector<int> stages = {}) {
  return compile(make_model(complete(c), batch), adamw(), {.microbatches = microbatches, .clip = 1},
                 {.mesh = {{"pipe", actors}},
                  .schedule = schedule,
                  .stages = std::move(stages),
                  .recompute = std::move(recompute)});
}

void expect_as_counted(const Compiled& c) {
  const Program& p = *c.program;
  const IdVector<StageId, StageKeeps> sizes = keeps(*p.step, p.stage_of);
  const std::vector<ActorAccount> accounts = account(p);
  const std::vector<u64> counted = count_by_hand(p.schedule, sizes);
  const std::vector<double> promised = theory(p.schedule, sizes);
  for (std::size_t a = 0; a < accounts.size(); ++a) {
    EXPECT_EQ(accounts[a].kept, counted[a]) << p.schedule.name << ", actor " << a;
    EXPECT_LE(double(accounts[a].kept), promised[a]) << p.schedule.name << ", actor " << a;
  }
}

TEST(Account, KeptBytesAreThoseCountedByHand) {
  // Sizes are multiples of 64 bytes: the plan rounds nothing up.
  ModelConfig m{.layers = 4, .width = 64, .heads = 4, .context = 32, .vocab = 128, .tied = false};
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "interleaved-1f1b"})
    for (int actors : {2, 3}) expect_as_counted(compiled(m, 12, 6, schedule, actors));
  for (const char* schedule : {"1f1b", "zb-h1", "zb-v"})
    for (Recompute r : {Recompute::full, Recompute::selective})
      expect_as_counted(compiled(m, 24, 12, schedule, 2, {r}));
  expect_as_counted(compiled(m, 24, 12, "1f1b", 1));
  m.family = "llama";
  for (const char* schedule : {"1f1b", "zb-h1", "zb-v"}) expect_as_counted(compiled(m, 24, 12, schedule));
}

TEST(Account, ThePeakAddsUp) {
  for (const char* schedule : {"1f1b", "zb-v", "dualpipe"}) {
    const Compiled c = compiled(tiny("gpt2", 4), 16, 8, schedule, 4);
    const std::vector<ActorAccount> accounts = account(*c.program);
    for (std::size_t a = 0; a < accounts.size(); ++a) {
      const ActorAccount& x = accounts[a];
      u64 sum = 0;
      for (const Holding& h : x.peak) sum += h.bytes;
      EXPECT_EQ(sum, x.live);
      EXPECT_EQ(x.live,
                c.program->actors[ActorId(a)].activation_bound);  // found by the planner, from the same lifetimes
      EXPECT_EQ(x.live + x.fragmentation, c.program->actors[ActorId(a)].bytes[Arena::activations]);
      EXPECT_LE(x.kept, x.live);
    }
  }
}

TEST(Account, ReferenceModelNeedsLittleBesideWhatItKeeps) {
  const ModelConfig m{.layers = 4, .width = 512, .heads = 8, .context = 256, .vocab = 8192, .tied = false};
  for (const char* schedule : {"1f1b", "zb-h1", "zb-v", "v-half", "v-min"}) {
    const bool folds = std::string_view(schedule).starts_with("v-") || std::string_view(schedule) == "zb-v";
    const Compiled c = compiled(m, 64, 16, schedule, 2, {}, folds ? std::vector{2, 3, 2, 3} : std::vector{6, 4});
    expect_as_counted(c);
    for (const ActorAccount& x : account(*c.program)) EXPECT_LE(double(x.beside()), 0.15 * double(x.kept)) << schedule;
  }
}

TEST(Account, NamesWhatIsAliveAtThePeak) {
  const Compiled c = compiled(tiny("gpt2", 4), 16, 8, "zb-h1");
  const ActorAccount x = account(*c.program)[1];
  EXPECT_GT(x.bytes(Kind::until_w), 0u);
  EXPECT_GT(x.bytes(Kind::for_w), 0u);
  const std::string text = c.program->memory_str();
  for (const char* word : {"weights", "gradients", "optimizer", "activations", "messages", "scratch", "total",
                           "F keeps until I", "F keeps until W", "I keeps for W", "microbatches", "W 2"})
    EXPECT_THAT(text, HasSubstr(word));
}

}  // namespace
}  // namespace stretto
