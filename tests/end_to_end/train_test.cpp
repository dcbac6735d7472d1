// The executable, as a user runs it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "support/command.h"
#include "support/files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using test::Result;
using test::text_of;
using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const char* const small_run = R"([model]
layers = 1
width = 32
heads = 2
context = 16
[data]
path = "examples/data/tales.txt"
[train]
steps = 5
batch = 4
[log]
dir = "out"
every = 2
)";

// A directory that looks like a checkout from where the user stands.
class Train : public testing::Test {
 protected:
  Train() {
    fs::create_directory_symlink(STRETTO_SOURCE "/examples", folder_ / "examples");
    folder_.write("small.toml", small_run);
  }
  Result run(const std::string& arguments) const { return test::stretto(arguments, folder_.str()); }
  static std::string last_line(const std::string& text) {
    const std::size_t end = text.find_last_not_of('\n'), start = text.rfind('\n', end);
    return text.substr(start + 1, end - start);
  }
  test::Folder folder_;
};

TEST_F(Train, TheQuickstartStarts) {
  const Result r = run("train examples/quickstart.toml --train.steps=2 --data.validation=0");
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.error, IsEmpty());
  EXPECT_THAT(r.out, HasSubstr("run      runs/quickstart-"));
  EXPECT_THAT(last_line(r.out), testing::MatchesRegex("parameters [0-9a-f]{16}"));
}

TEST_F(Train, FlagsAloneAreEnough) {
  const Result r = run("train --train.steps=1 --model.layers=1 --train.batch=1 --log.dir=flags");
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_TRUE(fs::exists(folder_ / "flags/config.toml"));
}

TEST_F(Train, TheResolvedConfigTrainsTheSameModel) {
  const Result first = run("train small.toml");
  ASSERT_EQ(first.code, 0) << first.error;
  const Result again = run("train out/config.toml --log.dir=again");
  ASSERT_EQ(again.code, 0) << again.error;
  EXPECT_EQ(last_line(first.out), last_line(again.out));
  const Result over = run("train out/config.toml");
  EXPECT_EQ(over.code, 1);
  EXPECT_THAT(
      over.error,
      HasSubstr("[log.dir] 'out' exists and is not empty; hint: go on with its run by --resume, choose another"));
}

TEST_F(Train, WrongInputExitsWithOne) {
  folder_.write("wrong.toml", std::string(small_run) + "[optimizer]\nlearning_rate = 3\nlr = \"big\"\n");
  Result r = run("train wrong.toml");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.out, IsEmpty());
  EXPECT_THAT(r.error, AllOf(HasSubstr("[wrong.toml:15] key 'optimizer.learning_rate' is unknown"),
                             HasSubstr("[wrong.toml:16] key 'optimizer.lr' is \"big\" but must be a number above 0")));
  r = run("train none.toml");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("none.toml"));
  r = run("train small.toml --data.path=none.txt");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("[data] there is no file 'none.txt'; hint: "));
  folder_.write("empty.txt", "");
  r = run("train small.toml --data.path=empty.txt");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("[data] 'empty.txt' has 0 bytes"));
  folder_.write("short.txt", "0123456789");
  r = run("train small.toml --data.path=short.txt");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("has 10 tokens, and one sequence with its targets takes 17"));
  folder_.write("binary.toml", std::string("\x00\xff\xfe", 3));
  EXPECT_EQ(run("train binary.toml").code, 1);
  EXPECT_EQ(run("train .").code, 1);
  EXPECT_FALSE(fs::exists(folder_ / "out"));  // nothing half-written
}

TEST_F(Train, WrongUsageExitsWithTwo) {
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "[stretto] no command is given; hint: there are bench, calibrate, check"},
           {"tarin small.toml", "[stretto] there is no command 'tarin'; hint: did you mean 'train'?"},
           {"train small.toml --train.steps 3",
            "unexpected argument '--train.steps'; hint: write its value after it: --train.steps=VALUE"},
           {"train small.toml --steps=3", "unexpected argument '--steps=3'"},
           {"train small.toml other.toml", "unexpected argument 'other.toml'"}}) {
    const Result r = run(arguments);
    EXPECT_EQ(r.code, 2) << arguments;
    EXPECT_THAT(r.out + r.error, HasSubstr(message)) << arguments;
  }
}

TEST_F(Train, ALossThatIsNotFiniteExitsWithThree) {
  const Result r = run("train small.toml --optimizer.name=sgd --optimizer.lr=1e30 --train.clip=0");
  EXPECT_EQ(r.code, 3);
  EXPECT_THAT(r.error,
              AllOf(HasSubstr("[train] step "), HasSubstr("the loss is "), HasSubstr("hint: a smaller optimizer.lr")));
  EXPECT_THAT(text_of(folder_ / "out/metrics.jsonl"), HasSubstr("null"));
}

// A child process, ended if a test forgets to wait for it.
struct Child {
  pid_t id = -1;
  ~Child() {
    if (id > 0) kill(id, SIGKILL), waitpid(id, nullptr, 0);
  }
  int wait() {
    int status = 0;
    waitpid(id, &status, 0);
    id = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
};

TEST_F(Train, CtrlCEndsCleanlyAfterTheCurrentStep) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string dir = "stop" + std::to_string(signal), dir_option = "--log.dir=" + dir;
    const fs::path metrics = folder_ / (dir + "/metrics.jsonl");
    Child child;
    child.id = fork();
    ASSERT_GE(child.id, 0);
    if (child.id == 0) {
      const int out = open((folder_ / (dir + ".out")).c_str(), O_WRONLY | O_CREAT, 0600);
      dup2(out, 1);
      if (chdir(folder_.str().c_str()) != 0) _exit(99);
      execl(STRETTO_BINARY "/stretto", "stretto", "train", "small.toml", "--train.steps=100000000", dir_option.c_str(),
            nullptr);
      _exit(99);
    }
    for (int i = 0; i < 3000 && text_of(metrics).empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_FALSE(text_of(metrics).empty()) << "no step within thirty seconds";
    kill(child.id, signal);
    EXPECT_EQ(child.wait(), 0);
    const std::string out = text_of(folder_ / (dir + ".out")), lines = text_of(metrics);
    const auto steps = std::count(lines.begin(), lines.end(), '\n');
    EXPECT_THAT(lines, EndsWith("\n"));
    EXPECT_THAT(out, HasSubstr("stopped after " + std::to_string(steps) + " of 100000000 steps"));
    EXPECT_THAT(last_line(out), StartsWith("parameters "));
  }
}

TEST_F(Train, OnATerminalThereIsABar) {
  Child child;
  int terminal = -1;
  winsize size{.ws_row = 40, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
  child.id = forkpty(&terminal, nullptr, nullptr, &size);
  ASSERT_GE(child.id, 0);
  if (child.id == 0) {
    if (chdir(folder_.str().c_str()) != 0) _exit(99);
    execl(STRETTO_BINARY "/stretto", "stretto", "train", "small.toml", nullptr);
    _exit(99);
  }
  std::string out;
  char buffer[4096];
  for (ssize_t n; (n = read(terminal, buffer, sizeof buffer)) > 0;) out.append(buffer, std::size_t(n));
  EXPECT_EQ(child.wait(), 0);
  close(terminal);
  EXPECT_THAT(out, AllOf(HasSubstr("%  step "), HasSubstr(" left\r\033[K"), ContainsRegex("parameters [0-9a-f]+")));
  const Result plain = run("train small.toml --log.dir=plain");
  EXPECT_THAT(plain.out, AllOf(Not(HasSubstr("left")), Not(HasSubstr("\r"))));
}

TEST_F(Train, ShowPrintsEveryStation) {
  for (const auto& [what, part] :
       std::vector<std::pair<std::string, std::string>>{{"graph", "contract("},
                                                        {"stages", "Nothing is left out: 4 of 4 pieces"},
                                                        {"program", "microbatch"},
                                                        {"memory", "kept between actions: at most "},
                                                        {"schedule", "zb-h1: makespan "},
                                                        {"timeline", "zb-h1, predicted: makespan "}}) {
    const Result r =
        run("show small.toml " + what + " --train.microbatches=2 --parallel.pipe=2 --parallel.schedule=zb-h1");
    EXPECT_EQ(r.code, 0) << what << r.error;
    EXPECT_THAT(r.out, HasSubstr(part)) << what;
  }
  const Result r = run("show small.toml grpah");
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.error, HasSubstr("did you mean 'graph'?"));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(Train, OutputThatCannotBeWrittenIsAFailure) {
  for (const char* command : {"show small.toml program", "show small.toml stages", "--help"}) {
    const Result r = run(std::string(command) + " > /dev/full");
    EXPECT_EQ(r.code, 3) << command;
    EXPECT_THAT(r.error, HasSubstr("[output] standard output cannot be written: No space left on device")) << command;
  }
}

TEST_F(Train, ShowDrawsTheTimelineOfARun) {
  for (const std::string kind : {"svg", "html", "json", "csv"}) {
    const Result r = run("show small.toml timeline --train.microbatches=2 --parallel.pipe=2 -o t." + kind);
    EXPECT_EQ(r.code, 0) << r.error;
    EXPECT_FALSE(text_of(folder_ / ("t." + kind)).empty());
  }
}

TEST_F(Train, VerifyComparesWithTheSerialRun) {
  Result r = run("verify small.toml --train.microbatches=4 --parallel.pipe=2 --parallel.schedule=zb-v --steps 2");
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("compared bit for bit: schedule zb-v and the serial run agree"));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  // Gradients added in descending order are the same up to rounding only.
  folder_.write("down.csv", "0F0,0F1,0F2,0F3,0B3,0B2,0B1,0B0\n1F0,1F1,1F2,1F3,1B3,1B2,1B1,1B0\n");
  const std::string down = "verify small.toml --train.microbatches=4 --parallel.pipe=2 --parallel.schedule=down.csv";
  r = run(down);
  EXPECT_EQ(r.code, 0) << r.out << r.error;
  r = run(down + " --tolerance 0");
  EXPECT_EQ(r.code, 3);
  EXPECT_THAT(r.out, HasSubstr("and the serial run differ"));
  EXPECT_THAT(r.error, AllOf(HasSubstr("[verify] step 1: the gradient of '"), HasSubstr("' differs in "),
                             HasSubstr(" elements, first at [")));
}

TEST_F(Train, QuietAndVerbose) {
  const Result quiet = run("train small.toml --quiet --log.dir=quiet");
  EXPECT_EQ(quiet.code, 0) << quiet.error;
  EXPECT_EQ(std::count(quiet.out.begin(), quiet.out.end(), '\n'), 2) << quiet.out;
  EXPECT_THAT(quiet.out, StartsWith("done: 5 of 5 steps"));
  const Result verbose = run("train small.toml --verbose --log.dir=verbose");
  for (int step = 1; step <= 5; ++step)
    EXPECT_THAT(verbose.out, ContainsRegex("\n +" + std::to_string(step) + " +[0-9]"));
  EXPECT_EQ(run("train small.toml --verbose --quiet --log.dir=both").code, 2);
}

TEST_F(Train, CheckSaysWhatWouldRun) {
  Result r = run("check small.toml");
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, AllOf(HasSubstr("model    gpt2, 1 layer, width 32"), HasSubstr("memory   ")));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  r = run("check small.toml --model.heads=3 --train.microbatches=3");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, AllOf(HasSubstr("3 heads do not divide width 32"), HasSubstr("cannot be cut into 3 equal")));
}

}  // namespace
}  // namespace stretto
