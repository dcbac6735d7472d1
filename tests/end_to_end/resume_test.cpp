// A run that is stopped or killed from outside, and gone on with.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "stretto/checkpoint/checkpoint.h"
#include "stretto/formats/fields.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using test::Result;
using test::text_of;
using testing::HasSubstr;

const char* const endless_run = R"([model]
layers = 2
width = 32
heads = 2
context = 16
[data]
path = "text.txt"
[train]
steps = 100000000
batch = 4
microbatches = 2
[optimizer]
schedule = "constant"
[log]
dir = "out"
[checkpoint]
every = 1
)";

class Stopped : public testing::Test {
 protected:
  Stopped() {
    folder_.write("small.toml", endless_run);
    folder_.write("text.txt", test::sentences(300));
  }
  ~Stopped() override {
    if (child_ > 0) kill(child_, SIGKILL), wait();
  }

  void start(const std::vector<std::string>& more) {
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ > 0) return;
    const int out = open((folder_ / "stdout").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, 1);
    if (chdir(folder_.str().c_str()) != 0) _exit(99);
    std::vector<std::string> words{"stretto", "train", "small.toml"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    execv(STRETTO_BINARY "/stretto", argv.data());
    _exit(99);
  }
  int wait() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::vector<i64> steps() const {
    std::vector<i64> all;
    std::istringstream lines(text_of(folder_ / "out/metrics.jsonl"));
    for (std::string line; std::getline(lines, line) && !lines.eof();)
      all.push_back(std::get<i64>(read_json(line, "metrics.jsonl").find("step")->value));
    return all;
  }
  void wait_for_step(i64 step) const {
    bool there = false;
    for (int i = 0; i < 6000 && !there; ++i) {
      const std::vector<i64> all = steps();  // once: a run that goes on writes the file anew
      there = !all.empty() && all.back() >= step;
      if (!there) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_TRUE(there);
  }
  i64 newest() const {
    const Newest n = newest_checkpoint(folder_ / "out/checkpoints");
    return n.checkpoint ? n.checkpoint->manifest().step : 0;
  }
  static std::vector<i64> up_to(i64 n) {
    std::vector<i64> all;
    for (i64 i = 1; i <= n; ++i) all.push_back(i);
    return all;
  }

  test::Folder folder_;
  pid_t child_ = -1;
};

TEST_F(Stopped, ASignalSavesAndTheRunGoesOn) {
  i64 last = 0;
  for (const int signal : {SIGTERM, SIGINT}) {
    start({"--resume", "--checkpoint.every=0"});
    wait_for_step(last + 2);
    kill(child_, signal);
    EXPECT_EQ(wait(), 0);
    ASSERT_GT(steps().back(), last);
    last = steps().back();
    EXPECT_EQ(steps(), up_to(last));
    EXPECT_EQ(newest(), last);
    EXPECT_THAT(text_of(folder_ / "stdout"), HasSubstr("stopped after " + std::to_string(last)));
  }
}

// Whatever is being written at that moment: what is left is whole, and not a step is missing or twice.
TEST_F(Stopped, KilledAtAnyMoment) {
  i64 before = 0;
  const char* asked = std::getenv("STRETTO_FAULT_RUNS");
  const int rounds = asked ? std::max(6, std::atoi(asked)) : 6;
  for (int round = 0; round < rounds; ++round) {
    start({"--resume"});
    wait_for_step(before + 1 + round % 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * round % 20));
    kill(child_, SIGKILL);
    EXPECT_EQ(wait(), -SIGKILL);
    EXPECT_GE(newest(), before);
    before = newest();
  }
  const Result r =
      test::stretto("train small.toml --resume --train.steps=" + std::to_string(before + 5), folder_.str());
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr(before > 0 ? "resume   after step " + std::to_string(before) : "no checkpoint yet"));
  EXPECT_EQ(steps(), up_to(before + 5));
  // The parameters are those of a run that was left alone.
  const Result whole =
      test::stretto("train small.toml --log.dir=whole --train.steps=" + std::to_string(before + 5), folder_.str());
  const auto hash = [](const std::string& out) { return out.substr(out.find("parameters ")); };
  EXPECT_EQ(hash(r.out), hash(whole.out));
}

// The first one waits for the end of the step, which takes hours here.
TEST_F(Stopped, ASecondSignalEndsTheRunAtOnce) {
  start({"--parallel.device=emulated", "--parallel.machine={flops=1.0, bandwidth=1.0}", "--checkpoint.keep=0"});
  const auto handled = [&] {  // the process catches SIGTERM by now
    const std::string status = text_of("/proc/" + std::to_string(child_) + "/status");
    const std::size_t at = status.find("SigCgt:");
    return at != status.npos && (std::stoull(status.substr(at + 7), nullptr, 16) >> (SIGTERM - 1) & 1) != 0;
  };
  for (int i = 0; i < 6000 && !handled(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(handled());
  kill(child_, SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  int status = 0;
  ASSERT_EQ(waitpid(child_, &status, WNOHANG), 0);  // it goes on with its step
  kill(child_, SIGTERM);
  EXPECT_EQ(wait(), -SIGTERM);
}

TEST_F(Stopped, TheConfigOfTheRunIsEnough) {
  ASSERT_EQ(test::stretto("train small.toml --train.steps=3", folder_.str()).code, 0);
  const Result r = test::stretto("train --resume=out --train.steps=5", folder_.str());
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(steps(), up_to(5));
  EXPECT_EQ(test::stretto("train small.toml --train.steps=7", folder_.str()).code, 1);  // not without saying so
}

TEST_F(Stopped, TheConfigIsThatOfTheLogDirectoryAndNeverOneThatLiesHere) {
  ASSERT_EQ(test::stretto("train small.toml --train.steps=3", folder_.str()).code, 0);
  folder_.write("config.toml", "[model]\nwidth = 64\n[log]\ndir = \"here\"\n");
  const Result r = test::stretto("train --resume --log.dir=out --train.steps=5", folder_.str());
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(steps(), up_to(5));
  const Result unnamed = test::stretto("train --resume", folder_.str());
  EXPECT_EQ(unnamed.code, 1);
  EXPECT_THAT(unnamed.error, HasSubstr("it is not said which run to continue"));
}

TEST_F(Stopped, DamageIsNamed) {
  ASSERT_EQ(test::stretto("train small.toml --train.steps=3", folder_.str()).code, 0);
  fs::resize_file(folder_ / "out/checkpoints/step-00000003/shard-00001.safetensors", 1000);
  const Result r = test::stretto("train small.toml --resume --train.steps=4", folder_.str());
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("damaged: [out/checkpoints/step-00000003/shard-00001.safetensors] is 1000 bytes long"));
  EXPECT_THAT(r.out, HasSubstr("resume   after step 2"));
  EXPECT_EQ(steps(), up_to(4));
}

}  // namespace
}  // namespace stretto
