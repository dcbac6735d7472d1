// One of several processes is killed or stopped: the others end soon, the message names it, nobody is left behind, the
// run can go on. STRETTO_FAULT_RUNS=50 repeats what is left to chance as often, and holds the time that it takes.
#include <random>

#include "launched.h"
#include "stretto/checkpoint/checkpoint.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using test::pause;
using test::soon;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class Faults : public test::Launched {
 protected:
  // Kills a rank and waits for the end of all.
  void kill_rank(int victim, const std::string& directory) {
    const bool begun = fs::exists(folder_ / directory);
    const pid_t process = rank_process(victim);
    ASSERT_GT(process, 0);
    ASSERT_TRUE(tell(process, SIGKILL)) << "it has ended before: " << said();
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(end(), 128 + SIGKILL) << said();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    slowest_ = std::max(slowest_, seconds);
    if (std::getenv("STRETTO_FAULT_RUNS")) {
      EXPECT_LT(seconds, 10);
    }
    EXPECT_THAT(said(), HasSubstr("rank " + std::to_string(victim) + " was killed by signal 9"));
    if (begun) {
      EXPECT_THAT(said(),
                  ContainsRegex("checkpoint.*; to (go on from it|begin again): stretto (launch -n [0-9] -- )?train "
                                "--resume=" +
                                directory));
    }
    expect_nothing_left();
  }
  static int repeats(int at_least = 1) {
    const char* n = std::getenv("STRETTO_FAULT_RUNS");
    return std::max(at_least, n ? std::atoi(n) : 1);
  }
  void say_count(int runs) const { fmt::print("{} runs; the slowest end took {:.1f} s\n", runs, slowest_); }
  double random(double below) { return std::uniform_real_distribution<>(0, below)(generator_); }
  std::mt19937 generator_{7};
  double slowest_ = 0;
};

TEST_F(Faults, ARankIsKilledAndTheRunGoesOn) {
  const std::string train = "train small.toml --parallel.pipe=3 --parallel.link={latency=0.002} --train.steps=16";
  ASSERT_EQ(run(train + " --parallel.pipe=1 --log.dir=whole").code, 0);
  ASSERT_EQ(losses("whole").size(), 16u);
  const int runs = repeats(2);
  for (int i = 0; i < runs; ++i) {
    const std::string directory = "run" + std::to_string(i);
    const int victim = int(generator_() % 3);
    begin(3, train + " --log.dir=" + directory);
    if (i % 2 == 0) {
      const std::size_t steps = 1 + generator_() % 10;
      ASSERT_TRUE(soon([&] { return has_steps(directory, steps); })) << said();
    } else {  // at any time: while it starts, too
      ASSERT_TRUE(soon([&] { return rank_process(victim) > 0; })) << said();
      pause(random(1));
    }
    kill_rank(victim, directory);
    const test::Result rest = launch(3, train + " --resume --log.dir=" + directory);
    ASSERT_EQ(rest.code, 0) << rest.error << log(0);
    EXPECT_EQ(losses(directory), losses("whole"));
    fs::remove_all(folder_ / directory);
    if (HasFailure()) FAIL() << "in run " << i;
  }
  say_count(runs);
}

bool saving(const fs::path& directory) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory / "checkpoints", none))
    if (entry.path().filename().string().starts_with(".step-")) return true;
  return false;
}

// Large enough that a save takes longer than a step; every step is saved.
TEST_F(Faults, KilledWhileSaving) {
  const std::string train =
      "train small.toml --model.width=128 --model.vocab=4000 --train.steps=6 --checkpoint.every=1";
  ASSERT_EQ(run(train + " --log.dir=whole").code, 0);
  const int runs = repeats(2);
  int with_checkpoint = 0;
  for (int i = 0; i < runs; ++i) {
    const int ranks = i % 2 == 0 ? 3 : 1;
    const std::string directory = "run" + std::to_string(i),
                      all = train + " --parallel.pipe=" + std::to_string(ranks) + " --log.dir=" + directory;
    begin(ranks, all);
    const std::size_t steps = i == 0 ? 3 : generator_() % 5;
    ASSERT_TRUE(soon([&] { return has_steps(directory, steps) && saving(folder_ / directory); }, 0.0005)) << said();
    pause(random(0.02));
    kill_rank(i % 4 == 0 ? ranks - 1 : 0, directory);
    const Newest newest = newest_checkpoint(folder_ / (directory + "/checkpoints"));
    EXPECT_TRUE(newest.damaged.empty()) << newest.damaged[0];
    EXPECT_TRUE(newest.checkpoint || steps < 3) << "the first one was written before the second began";
    with_checkpoint += newest.checkpoint.has_value();
    const test::Result rest = launch(ranks, all + " --resume");
    ASSERT_EQ(rest.code, 0) << rest.error << log(0);
    EXPECT_EQ(losses(directory), losses("whole"));
    fs::remove_all(folder_ / directory);
    if (HasFailure()) FAIL() << "in run " << i;
  }
  fmt::print("{} of them had a whole checkpoint\n", with_checkpoint);
  say_count(runs);
}

// Also while a checkpoint is saved, which may take longer than a step.
TEST_F(Faults, ARankThatStandsStillIsNamedByAllOthers) {
  const std::string stands = "train small.toml --parallel.pipe=3 --train.steps=100000 --parallel.timeout=2 --log.dir=run";
  for (const bool often : {false, true}) {
    begin(3, stands + (often ? " --checkpoint.every=1" : " --checkpoint.every=0"));
    ASSERT_TRUE(soon([&] { return has_steps("run", 3) && (!often || saving(folder_ / "run")); }, 0.0005)) << said();
    ASSERT_TRUE(tell(rank_process(1), SIGSTOP));
    EXPECT_EQ(end(), 3) << said();
    for (const int rank : {0, 2})
      EXPECT_THAT(log(rank),
                  AllOf(HasSubstr("[watchdog]"), ContainsRegex("rank 1 \\(process [0-9]+\\) has given no sign of life")))
          << rank;
    expect_nothing_left();
    fs::remove_all(folder_ / "run");
    if (HasFailure()) FAIL() << (often ? "while it saves" : "in a step");
  }
}

TEST_F(Faults, ASignalEndsARunAfterItsStep) {
  begin(2, "train small.toml --parallel.pipe=2 --train.steps=100000 --log.dir=run");
  ASSERT_TRUE(soon([&] { return has_steps("run", 2); })) << said();
  kill(launched_, SIGINT);
  EXPECT_EQ(end(), 0) << said();
  EXPECT_THAT(test::text_of(folder_ / "out"), HasSubstr("stopped after"));
  EXPECT_TRUE(fs::exists(folder_ / "run/report.html"));
}

TEST_F(Faults, RestartsGoOnFromTheNewestCheckpointWithFewerRanks) {
  ASSERT_EQ(run("train small.toml --train.steps=16 --log.dir=whole").code, 0);
  begin(3, "train small.toml --parallel.pipe=3 --train.steps=16 --parallel.link={latency=0.005} --log.dir=run",
        "--restarts=1 --elastic");
  ASSERT_TRUE(soon([&] { return has_steps("run", 5); })) << said();
  ASSERT_TRUE(tell(rank_process(2), SIGKILL)) << said();
  EXPECT_EQ(end(), 0) << said();
  EXPECT_THAT(said(),
              AllOf(HasSubstr("rank 2 was killed by signal 9"), HasSubstr("restart 1 of 1, with 2 ranks, in run")));
  EXPECT_EQ(losses("run"), losses("whole"));
}

TEST_F(Faults, RestartsOfARunThatGoesOnStayInItsDirectory) {
  ASSERT_EQ(run("train small.toml --train.steps=4 --log.dir=base").code, 0);
  const std::vector<std::string> first = losses("base");
  begin(1, "train --resume=base --train.steps=300 --checkpoint.every=1", "--restarts=1");
  ASSERT_TRUE(soon([&] { return has_steps("base", 6); })) << said();
  ASSERT_TRUE(tell(rank_process(0), SIGKILL));
  EXPECT_EQ(end(), 0) << said();
  EXPECT_THAT(said(), HasSubstr("restart 1 of 1, with 1 ranks, in base"));
  EXPECT_FALSE(fs::exists(folder_ / "logs/run"));
  EXPECT_EQ(losses("base").size(), 300u);
  std::vector<std::string> all = losses("base");
  all.resize(first.size());
  EXPECT_EQ(all, first);
  const test::Result r =
      launch(1, "train small.toml --train.steps=301 --resume=base/checkpoints/" + checkpoint_name(300), "--restarts=1");
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.error, HasSubstr("would begin there again at every restart; hint: give --resume the run's directory"));
}

TEST_F(Faults, RestartsAreCountedAndTheLastFailureIsSaid) {
  begin(2, "train small.toml --parallel.pipe=2 --train.steps=100000 --log.dir=run", "--restarts=1");
  pid_t last = 0;
  for (const char* step : {"before", "after"}) {
    pid_t rank = 0;
    ASSERT_TRUE(soon([&] { return (rank = rank_process(1)) > 0 && rank != last; })) << step << said();
    ASSERT_TRUE(tell(last = rank, SIGKILL));
  }
  EXPECT_EQ(end(), 128 + SIGKILL);
  EXPECT_THAT(said(), AllOf(HasSubstr("restart 1 of 1, with 2 ranks"), Not(HasSubstr("restart 2"))));
  expect_nothing_left();
}

// Restarts are for what does not happen again.
TEST_F(Faults, ARunThatFailsAtTheSameStepTwiceIsNotStartedAThirdTime) {
  const std::string diverges = "train small.toml --optimizer.lr=1e30 --train.clip=0 --train.steps=50 --log.dir=run";
  const test::Result r = launch(1, diverges, "--restarts=9");
  EXPECT_EQ(r.code, 3);
  EXPECT_THAT(r.error,
              AllOf(HasSubstr("restart 1 of 9"), Not(HasSubstr("restart 2 of 9")),
                    ContainsRegex("\\[launch\\] the run has failed after step [0-9]+ twice, and would again")));
  begin(2, "train small.toml --parallel.pipe=2 --train.steps=100000 --checkpoint.every=1 --log.dir=killed",
        "--restarts=3");
  pid_t last = 0;
  for (int start = 0; start < 3; ++start) {  // each gets further than the one before it
    const std::size_t steps = losses("killed").size();
    pid_t rank = 0;
    ASSERT_TRUE(soon([&] { return (rank = rank_process(1)) > 0 && rank != last && has_steps("killed", steps + 3); }))
        << start << said();
    ASSERT_TRUE(tell(last = rank, SIGKILL));
  }
  ASSERT_TRUE(soon([&] { return rank_process(1) > 0 && rank_process(1) != last; })) << said();
  EXPECT_THAT(said(), HasSubstr("restart 3 of 3"));
  kill(launched_, SIGTERM), pause(0.1), kill(launched_, SIGTERM);
  end();
}

// Its directory in shared memory, too, before there is any rank.
TEST_F(Faults, TheLauncherIsKilledWhileItStarts) {
  const int runs = repeats(4);
  for (int i = 0; i < runs; ++i) {
    begin(2, "train small.toml --parallel.pipe=2 --train.steps=100000 --log.dir=run");
    pause(i < 3 ? 0.05 * (i + 1) : random(0.5));
    kill(launched_, SIGKILL);
    EXPECT_EQ(end(), 128 + SIGKILL);
    expect_nothing_left();
    fs::remove_all(folder_ / "run");
  }
}

TEST_F(Faults, TheLauncherIsKilled) {
  begin(2, "train small.toml --parallel.pipe=2 --train.steps=100000 --log.dir=run");
  ASSERT_TRUE(soon([&] { return has_steps("run", 2); })) << said();
  kill(launched_, SIGKILL);
  EXPECT_EQ(end(), 128 + SIGKILL);
  expect_nothing_left();
}

}  // namespace
}  // namespace stretto
