// How a launch ends when something happens to it, to its mpirun or to a rank that has only just begun: soon, with a
// code that says who is to blame, and with nothing left. STRETTO_FAULT_RUNS=50 tries as many moments.
#include <random>

#include "launched.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using test::pause;
using test::soon;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class Endings : public test::OneRankDiffers {
 protected:
  const std::string endless_ = "train small.toml --parallel.pipe=2 --train.steps=1000000 --log.dir=run ";
  // Moments after the start of a launch, in seconds.
  static std::vector<double> moments(std::vector<double> always, double longest) {
    std::mt19937 generator(11);
    const char* n = std::getenv("STRETTO_FAULT_RUNS");
    while (int(always.size()) < (n ? std::atoi(n) : 0))
      always.push_back(std::uniform_real_distribution<>(0, longest)(generator));
    return always;
  }
  void expect_whole_end(int code, const std::string& message) {
    EXPECT_EQ(end(), code) << said();
    EXPECT_THAT(said(), HasSubstr(message));
    expect_nothing_left();
  }
};

TEST_F(Endings, CtrlCIsNeverLost) {
  for (const double moment : moments({0.02, 0.1, 0.4}, 1.5)) {
    begin(2, endless_);
    pause(moment);
    kill(launched_, SIGINT);
    const int code = end();
    EXPECT_THAT(code, AnyOf(0, 128 + SIGINT)) << moment << said();  // 0: it had steps already
    // Nothing: it had not even got so far as to hear signals.
    EXPECT_THAT(said(), AnyOf("", "[launch] ended by signal 2 (Interrupt)\n")) << moment;
    expect_nothing_left();
    if (HasFailure()) FAIL() << "after " << moment << " s";
    fs::remove_all(folder_ / "run");
  }
}

TEST_F(Endings, TheSecondCtrlCEndsAtOnce) {
  begin(2, endless_ + "--parallel.timeout=0");
  ASSERT_TRUE(soon([&] { return has_steps("run", 2); })) << said();
  ASSERT_TRUE(tell(rank_process(1), SIGSTOP));  // no step ends any more
  for (int i = 0; i < 5; ++i) kill(launched_, SIGINT), pause(0.05);
  expect_whole_end(128 + SIGINT, "[launch] ended by signal 2 (Interrupt)");
}

// Not with the code that MPI's library then ends its processes with: it would mean that the input is wrong, and the run
// would not be started again.
TEST_F(Endings, MpirunIsKilled) {
  for (const double moment : moments({0, 0.3}, 1)) {
    begin(2, endless_);
    pid_t mpirun = 0;
    ASSERT_TRUE(soon([&] { return (mpirun = mpirun_process()) > 0; }, 0.002)) << said();
    pause(moment);
    ASSERT_TRUE(tell(mpirun, SIGKILL)) << said();
    expect_whole_end(3, "[launch] mpirun was killed by signal 9");
    if (HasFailure()) FAIL() << "after " << moment << " s";
    fs::remove_all(folder_ / "run");
  }
  begin(2, endless_, "--restarts=1");
  for (const int signal : {SIGKILL, SIGTERM}) {  // files in shared memory are there by now
    ASSERT_TRUE(soon([&] { return has_steps("run", 2) && mpirun_process() > 0; })) << said();
    const pid_t mpirun = mpirun_process();
    ASSERT_TRUE(tell(mpirun, signal));
    if (signal == SIGKILL) fs::remove(folder_ / "run/metrics.jsonl");
    ASSERT_TRUE(signal == SIGTERM || soon([&] { return mpirun_process() != mpirun; }));
  }
  expect_whole_end(3, "[launch] restart 1 of 1");
  EXPECT_THAT(said(), HasSubstr("[launch] mpirun ended with code"));
}

// MPICH's mpirun does not notice that the process is gone with which it has started the ranks, and nobody reads what
// they print any more: they would work until a pipe is full and then stand still.
TEST_F(Endings, WhoStartedTheRanksIsKilled) {
  begin(2, endless_ + "--parallel.timeout=0");
  ASSERT_TRUE(soon([&] { return has_steps("run", 2); })) << said();
  ASSERT_TRUE(tell(starter_of(0), SIGKILL)) << said();
  expect_whole_end(3, "");
  // MPICH's mpirun may end at once, by an assertion of its own.
  EXPECT_THAT(said(), AnyOf(HasSubstr("[launch] mpirun was killed by signal 9"), HasSubstr("[launch] mpirun ended with code"),
                            HasSubstr("[launch] the processes with which mpirun had started the ranks have ended")));
}

TEST_F(Endings, MpirunThatIsStoppedGoesOn) {
  begin(2, "train small.toml --parallel.pipe=2 --train.steps=40 --log.dir=run");
  ASSERT_TRUE(soon([&] { return has_steps("run", 1); })) << said();
  ASSERT_TRUE(tell(mpirun_process(), SIGSTOP));
  EXPECT_EQ(end(), 0) << said();
  EXPECT_EQ(losses("run").size(), 40u);
  expect_nothing_left();
}

TEST_F(Endings, ARankThatStopsWhileItStartsIsNoticed) {
  for (const double moment : moments({0, 0.15}, 0.5)) {
    begin(2, endless_ + "--parallel.timeout=2 --parallel.start_timeout=2");
    pid_t rank = 0;
    ASSERT_TRUE(soon([&] { return (rank = rank_process(1)) > 0; }, 0.002)) << said();
    pause(moment);
    ASSERT_TRUE(tell(rank, SIGSTOP));
    expect_whole_end(3, "rank 0: [watchdog]");
    if (HasFailure()) FAIL() << "after " << moment << " s";
    fs::remove_all(folder_ / "run");
  }
}

TEST_F(Endings, NobodyReadsTheConsole) {
  const test::Result r = test::shell("set +e\n'" + test::binaries() + "/stretto' launch -n 2 --logs=logs -- " +
                                         endless_ + "--train.steps=300 | head -1\nexit ${PIPESTATUS[0]}",
                                     folder_.str());
  EXPECT_THAT(r.code, AnyOf(0, 3)) << r.error;  // as mpirun takes it
  expect_nothing_left();
}

// mpirun waits for ever when it cannot have the pipes that it needs.
TEST_F(Endings, MpirunThatStartsNoRankIsEnded) {
  folder_.write("idle", "#!/bin/sh\n[ \"$1\" = --version ] && exit\necho no pipes are left >&2\nexec sleep 1000\n");
  test::shell("chmod +x idle", folder_.str());
  const test::Result r = launch(2, endless_, "--start-timeout=1 --mpirun=./idle");
  EXPECT_EQ(r.code, 3);
  EXPECT_THAT(r.error, AllOf(HasSubstr("mpirun has started 0 of 2 ranks, and in 1 s no other"),
                             HasSubstr("mpirun.log says\nno pipes are left")));
  expect_nothing_left();
}

TEST_F(Endings, LogsAreOfOneLaunchAtATime) {
  begin(2, endless_);
  ASSERT_TRUE(soon([&] { return has_steps("run", 1); })) << said();
  const test::Result second = launch(2, "show config");
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.error, AllOf(HasSubstr("[launch] another launch is writing its logs to"), HasSubstr("hint: ")));
  kill(launched_, SIGINT);
  EXPECT_EQ(end(), 0) << said();
  EXPECT_EQ(launch(2, "show config").code, 0);
}

TEST_F(Endings, AsManyProcessesAsTheMeshHasRanks) {
  const test::Result r = run("launch --logs=logs -- train small.toml --parallel.pipe=2 --train.steps=1 --log.dir=run");
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("2 processes on 1 node"));
  const test::Result bench = run("launch --logs=logs -- bench comm small.toml --parallel.data=2");
  EXPECT_EQ(bench.code, 0) << bench.error;
  EXPECT_THAT(bench.out, HasSubstr("2 processes on 1 node"));
  EXPECT_EQ(run("launch --logs=logs -- show config").code, 0);
}

// Neither a shell nor anybody else reads the name.
TEST_F(Endings, MpirunMayHaveAnyName) {
  mpirun_with(0, ":");
  for (const std::string name : {"it's", "x'; touch PWNED; '"}) {
    fs::create_directory(folder_ / name);
    fs::copy(folder_ / "mpirun", folder_ / (name + "/mpirun"));
    const test::Result r = launch(2, "show config", "--mpirun=\"" + (folder_ / name).string() + "/mpirun\"");
    EXPECT_EQ(r.code, 0) << r.error;
  }
  EXPECT_FALSE(fs::exists(folder_ / "PWNED"));
}

// Nor what lies among the logs.
TEST_F(Endings, FilesAmongTheLogsAreNotBelieved) {
  const pid_t innocent = fork();
  if (innocent == 0) {
    ::pause();
    _exit(0);
  }
  begin(2, endless_);
  ASSERT_TRUE(soon([&] { return has_steps("run", 1); })) << said();
  for (const char* rank : {"0", "1"}) {
    folder_.write(std::string("logs/rank-") + rank + ".pids", fmt::format("{0} {0}\n", innocent));
    folder_.write(std::string("logs/rank-") + rank + ".end", "256 1.0 0 1\nrank 1: [x] y\n");
  }
  kill(launched_, SIGINT);
  EXPECT_EQ(end(), 0) << said();
  EXPECT_EQ(kill(innocent, 0), 0);
  EXPECT_EQ(waitpid(innocent, nullptr, WNOHANG), 0) << "somebody else was hit";
  kill(innocent, SIGKILL);
  waitpid(innocent, nullptr, 0);
}

TEST_F(Endings, LinksAmongTheLogsAreNotFollowed) {
  for (const char* name : {"rank-1.log", "mpirun.log"}) {
    folder_.write("mine", "mine\n");
    fs::create_directory(folder_ / "logs");
    fs::create_symlink(folder_ / "mine", folder_ / "logs" / name);
    const test::Result r = launch(2, "show config");
    EXPECT_EQ(r.code, 1) << r.error;
    EXPECT_THAT(r.error, HasSubstr(std::string(name) + "' is a link; hint: ")) << r.error;
    EXPECT_EQ(test::text_of(folder_ / "mine"), "mine\n");
    expect_nothing_left();
    fs::remove_all(folder_ / "logs");
  }
}

TEST_F(Endings, NoStandardStreams) {
  for (const std::string what : {"train small.toml --log.dir=run",
                                 "launch -n 2 --logs=logs -- train small.toml --parallel.pipe=2 --log.dir=run"}) {
    const test::Result r = test::shell("'" + test::binaries() + "/stretto' " + what + " <&- >&- 2>&-", folder_.str());
    EXPECT_EQ(r.code, 0) << what;
    const std::string log = test::text_of(folder_ / "run/log.txt");
    const std::size_t once = log.find("\nparameters ");
    ASSERT_NE(once, std::string::npos) << what;
    EXPECT_EQ(log.find("\nparameters ", once + 1), std::string::npos) << "everything is in it twice";
    EXPECT_EQ(losses("run").size(), 4u);
    fs::remove_all(folder_ / "run");
  }
}

// Ranks of one machine talk through its memory.
TEST_F(Endings, NoRankListensOnTheNetwork) {
  if (mpirun(1).find("--oversubscribe") == std::string::npos) GTEST_SKIP() << "MPICH's ranks inherit its mpirun's port";
  begin(2, endless_);
  ASSERT_TRUE(soon([&] { return has_steps("run", 1); })) << said();
  std::string sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) sockets += test::text_of(table);
  for (const int rank : {0, 1})
    for (const auto& fd : fs::directory_iterator(fmt::format("/proc/{}/fd", rank_process(rank)))) {
      std::error_code closed;
      const std::string target = read_symlink(fd.path(), closed).string();
      if (!target.starts_with("socket:[")) continue;
      const std::regex listens(fmt::format(" 0A .* {} ", target.substr(8, target.size() - 9)));
      std::istringstream lines(sockets);
      for (std::string line; std::getline(lines, line);) EXPECT_FALSE(std::regex_search(line, listens)) << line;
    }
  kill(launched_, SIGINT);
  EXPECT_EQ(end(), 0);
}

}  // namespace
}  // namespace stretto
