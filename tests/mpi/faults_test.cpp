// One of several processes fails: the others end soon, the message names it, nobody is left behind, the run can go on.
// STRETTO_FAULT_RUNS=50 repeats what is left to chance as often.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "processes.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Looks again and again, for a minute.
template <class Holds>
bool soon(Holds holds) {
  for (int i = 0; i < 1200; ++i, pause(0.05))
    if (holds()) return true;
  return false;
}

class Faults : public test::Processes {
 protected:
  ~Faults() override {
    if (launched_ > 0) kill(launched_, SIGKILL), waitpid(launched_, nullptr, 0);
  }

  // `stretto launch` in the background.
  void begin(int ranks, const std::string& arguments, const std::string& flags = "") {
    launched_ = fork();
    if (launched_ == 0) {
      if (chdir(folder_.str().c_str()) != 0) _exit(1);
      const int out = open("out", O_CREAT | O_WRONLY | O_TRUNC, 0644),
                error = open("error", O_CREAT | O_WRONLY | O_TRUNC, 0644);
      dup2(out, 1);
      dup2(error, 2);
      const std::string all = "exec '" STRETTO_BINARY "/stretto' launch -n " + std::to_string(ranks) + " --logs=logs " +
                              flags + " -- " + arguments;
      execl("/bin/sh", "sh", "-c", all.c_str(), nullptr);
      _exit(1);
    }
  }
  // Its exit code; the time it took is up to the test's own limit.
  int end() {
    int status = 0;
    const bool ended = soon([&] { return waitpid(launched_, &status, WNOHANG) == launched_; });
    if (!ended) return -1;
    launched_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_t rank_process(int rank) const {
    pid_t guardian = 0, process = 0;
    std::ifstream(folder_ / ("logs/rank-" + std::to_string(rank) + ".pids")) >> guardian >> process;
    return process;
  }
  bool has_steps(const std::string& run, std::size_t steps) const {
    if (!fs::exists(folder_ / (run + "/metrics.jsonl"))) return false;
    const std::string text = test::text_of(folder_ / (run + "/metrics.jsonl"));
    return std::size_t(std::count(text.begin(), text.end(), '\n')) >= steps;
  }
  std::string said() const { return test::text_of(folder_ / "error"); }
  std::vector<pid_t> pids(int ranks) const {
    std::vector<pid_t> all;
    for (int r = 0; r < ranks; ++r) all.push_back(rank_process(r));
    return all;
  }
  static void expect_gone(const std::vector<pid_t>& all) {
    for (const pid_t p : all) EXPECT_TRUE(soon([&] { return kill(p, 0) != 0; })) << "process " << p << " is left";
  }
  static std::vector<std::string> shared_files() {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator("/dev/shm"))
      if (const std::string name = entry.path().filename(); name.starts_with("stretto") || name.starts_with("vader"))
        all.push_back(name);
    return all;
  }
  static int repeats() {
    const char* n = std::getenv("STRETTO_FAULT_RUNS");
    return n ? std::max(1, std::atoi(n)) : 1;
  }
  pid_t launched_ = 0;
};

TEST_F(Faults, ARankIsKilledAndTheRunGoesOn) {
  const test::Result whole = run("train small.toml --parallel.pipe=3 --train.steps=40 --log.dir=whole");
  ASSERT_EQ(whole.code, 0) << whole.error;
  std::mt19937 random(7);
  for (int i = 0; i < repeats(); ++i) {
    const std::string directory = "run" + std::to_string(i),
                      train = "train small.toml --parallel.pipe=3 --log.dir=" + directory;
    const int victim = int(random() % 3);
    begin(3, train + " --train.steps=100000");
    ASSERT_TRUE(soon([&] { return has_steps(directory, 4 + random() % 20); })) << said();
    const std::vector<pid_t> all = pids(3);
    ASSERT_GT(all[std::size_t(victim)], 0);
    ASSERT_EQ(kill(all[std::size_t(victim)], SIGKILL), 0);
    EXPECT_EQ(end(), 128 + SIGKILL);
    EXPECT_THAT(said(), HasSubstr("rank " + std::to_string(victim) + " was killed by signal 9"));
    expect_gone(all);
    const test::Result rest = launch(3, train + " --train.steps=40 --resume");
    ASSERT_EQ(rest.code, 0) << rest.error << log(0);
    if (rest.out.find("nothing to do") == std::string::npos) {
      EXPECT_EQ(numbers(rest.out).back(), numbers(whole.out).back());
    }
  }
  EXPECT_THAT(shared_files(), IsEmpty());
}

TEST_F(Faults, ARankThatStandsStillIsNamedByAllOthers) {
  begin(3, "train small.toml --parallel.pipe=3 --train.steps=100000 --parallel.timeout=2 --log.dir=run");
  ASSERT_TRUE(soon([&] { return has_steps("run", 3); })) << said();
  const std::vector<pid_t> all = pids(3);
  ASSERT_EQ(kill(all[1], SIGSTOP), 0);
  EXPECT_EQ(end(), 3) << said();
  for (const int rank : {0, 2})
    EXPECT_THAT(log(rank),
                AllOf(HasSubstr("[watchdog]"), ContainsRegex("rank 1 \\(process [0-9]+\\) has given no sign of life")))
        << rank;
  expect_gone(all);
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
  const test::Result whole = run("train small.toml --train.steps=30 --log.dir=whole");
  begin(3, "train small.toml --parallel.pipe=3 --train.steps=30 --parallel.link={latency=0.005} --log.dir=run",
        "--restarts=1 --elastic");
  ASSERT_TRUE(soon([&] { return has_steps("run", 5); })) << said();
  kill(rank_process(2), SIGKILL);
  EXPECT_EQ(end(), 0) << said();
  EXPECT_THAT(said(),
              AllOf(HasSubstr("rank 2 was killed by signal 9"), HasSubstr("restart 1 of 1, with 2 ranks, in run")));
  EXPECT_EQ(numbers(test::text_of(folder_ / "out")).back(), numbers(whole.out).back());
}

TEST_F(Faults, TheLauncherIsKilled) {
  begin(2, "train small.toml --parallel.pipe=2 --train.steps=100000 --log.dir=run");
  ASSERT_TRUE(soon([&] { return has_steps("run", 2); })) << said();
  const std::vector<pid_t> all = pids(2);
  kill(launched_, SIGKILL);
  EXPECT_EQ(end(), 128 + SIGKILL);
  expect_gone(all);
}

TEST_F(Faults, NumbersThatAreNotFiniteEndAllRanks) {
  const test::Result r =
      launch(2, "train small.toml --parallel.pipe=2 --optimizer.lr=1e30 --train.clip=0 --train.steps=50 --log.dir=run");
  EXPECT_EQ(r.code, 3);
  EXPECT_THAT(r.error, HasSubstr("the loss is"));
}

TEST_F(Faults, ADiskThatIsFullIsNamed) {
  const test::Result r = launch(2, "train small.toml --parallel.pipe=2 --log.dir=/proc/nowhere/run");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("rank 0: [log.dir] cannot make the run directory"));
}

}  // namespace
}  // namespace stretto
