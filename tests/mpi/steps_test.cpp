// Processes that are in different steps. The tests named StepsInsideMpi are run by the others, under mpirun.
#include "processes.h"
#include "stretto/comm/world.h"
#include "support/small_models.h"

namespace stretto {
namespace {

class StepsInsideMpi : public testing::Test {
 protected:
  void SetUp() override {
    if (find_world(environment()).size == 1) GTEST_SKIP() << "is run under mpirun by other tests";
  }
  void TearDown() override {
    if (HasFailure()) peers()->abort(1);  // the others would wait
  }
  static const std::shared_ptr<Peers>& peers() {
    static const std::shared_ptr<Peers> all = mpi_peers({.world = find_world(environment()), .timeouts = Timeouts::all(60)});
    return all;
  }
  // Actors that end one after the other: nothing that the last one does at its end is needed by the first.
  static Compiled like_a_staircase(double clip = 0, bool late = false) {
    const ModelConfig model{.family = "llama", .layers = 8, .width = 32, .heads = 4, .context = 16, .vocab = 50};
    return compile(
        make_model(model, 16), adamw({.lr = 1e-2}),
        {.microbatches = 8, .clip = clip, .clip_late = late, .skip_nonfinite = clip > 0},
        {.mesh = {{"pipe", 4}}, .schedule = "zb-h2", .stages = {5, 4, 4, 5}, .remote = !peers()->shares_memory()});
  }
  static bool last() { return peers()->rank() == peers()->size() - 1; }
};

// The last rank does not end its first step before all others have begun their second.
TEST_F(StepsInsideMpi, ARankGoesOnWhileAnotherIsInTheStepBefore) {
  const Compiled c = like_a_staircase();
  const auto begun = peers()->board(1);
  Engine engine(c.program, {.seed = 1, .run = {.timeout = 20, .peers = peers()}, .ahead = true});
  const auto word = [&] { begun->say(std::vector<u64>{u64(1) << peers()->rank()}); };
  u64 seen = 0;
  engine.submit(1, {.end = [&](Worker&, double) {
                  if (!last()) return;
                  word();
                  seen = begun->merged()[0];
                }});
  engine.submit(2, {.begin = [&](Worker&) {
                  if (!last()) word();
                  return true;
                }});
  engine.wait();
  engine.wait();
  if (last()) {
    EXPECT_EQ(seen, 0b1111u);
  }
}

// Numbers are those of one step at a time; a step that is made again, and one that is left out, too.
TEST_F(StepsInsideMpi, SameNumbersAsStepByStep) {
  for (const bool late : {false, true}) {
    const Compiled c = like_a_staircase(late ? 0.5 : 0, late);
    const auto numbers = [&](bool ahead) {
      Trainer t(c, {.peers = peers()});
      std::vector<double> all;
      for (int next = 0; next < 6 || t.steps_under_way() > 0;) {
        while (next < 6 && t.room() && (ahead || t.steps_under_way() == 0)) t.submit(random_batch(c, 50, ++next));
        const StepResult r = t.wait();
        all.insert(all.end(), {double(r.step), r.loss, r.grad_norm});
        EXPECT_EQ(r.worked.size(), 4u);
        EXPECT_GT(r.worked[3], 0);
      }
      all.push_back(double(t.parameters_hash()));
      return all;
    };
    EXPECT_EQ(numbers(true), numbers(false));
  }
}

// Rows that find no room make all processes compile the program again, and the step runs once more.
TEST_F(StepsInsideMpi, RoomIsMadeByAllOfThem) {
  const ModelConfig model{.family = "mixtral", .layers = 3, .width = 16, .heads = 4, .ff = 24, .context = 8,
                          .vocab = 30, .experts = 8};
  for (const bool pipe : {false, true}) {
    Parallel p{.names = {.expert = pipe ? 2 : 4}, .expert_rows = ExpertRows::exchange, .expert_room = 1};
    if (pipe) p.mesh = {{"pipe", 2}};
    p.remote = !peers()->shares_memory();
    const Training training{.microbatches = 2, .seed = 3, .clip = pipe ? 0.1 : 0, .clip_late = pipe};
    const auto numbers = [&](double room, const std::shared_ptr<Peers>& processes) {
      p.expert_room = room;
      Trainer t(compile(make_model(model, 16), adamw({.lr = 1e-2}), training, p), {.peers = processes});
      std::vector<double> all;
      for (int i = 1; i <= 3; ++i) {
        const StepResult r = t.step(random_batch(t.compiled(), 30, i));
        EXPECT_TRUE(r.updated);
        all.insert(all.end(), {r.loss, r.grad_norm});
      }
      EXPECT_TRUE(room > 1 || t.compiled().parallel.expert_room > 1);
      all.push_back(double(t.parameters_hash()));
      return all;
    };
    const std::vector<double> narrow = numbers(1, peers());
    EXPECT_EQ(narrow, numbers(4, peers()));
    EXPECT_EQ(narrow, numbers(1, nullptr)) << "threads";
  }
}

// What one process says at the end of a step all hear with its numbers.
TEST_F(StepsInsideMpi, WhatAnybodySaysAllHear) {
  const Compiled c = like_a_staircase();
  bool asked = false;
  Trainer t(c, {.peers = peers(), .say = [&] { return u64(asked && last() ? 4 : 0); }});
  for (int i = 1; i <= 4; ++i) {
    asked = i == 3;
    EXPECT_EQ(t.step(random_batch(c, 50, i)).said, i == 3 ? 4u : 0u);
  }
}

class StepsOfProcesses : public test::Processes {
 protected:
  void SetUp() override {
    test::Processes::SetUp();
    if (std::getenv("STRETTO_TEST_MPIRUN")) GTEST_SKIP() << "this program has one MPI, and that mpirun is of another";
  }
  static void inside(int per_node) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const test::Result r =
        test::shell("export STRETTO_RANKS_PER_NODE=" + std::to_string(per_node) + "\ntimeout 120 env " + mpirun(4) +
                        "'" + self + "' --gtest_filter='StepsInsideMpi.*'",
                    ".");
    EXPECT_EQ(r.code, 0) << r.out << r.error;
  }
};
TEST_F(StepsOfProcesses, WithSharedMemory) { inside(4); }
TEST_F(StepsOfProcesses, ByMessages) { inside(1); }

}  // namespace
}  // namespace stretto
