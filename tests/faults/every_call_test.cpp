// The n-th allocation, write, fsync, rename, mapping, thread or fork of a command fails, for n = 1 until there is none:
// it goes on and its result is the same, or it ends with one message, and what was there before is there. Here one n of
// each command and kind; with STRETTO_LONG all of them, of allocations about 300.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>

#include "stretto/base/hash.h"
#include "stretto/checkpoint/checkpoint.h"
#include "stretto/comm/peers.h"
#include "support/chats.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using test::Folder;
using test::Result;
using test::text_of;

// What is the same whenever a command ends well.
enum class Same { parameters, printed, file };
struct Command {
  const char *name, *arguments;
  Same same;
  const char* file = "";
  bool renders = false;  // conversations
};
const Command commands[] = {
    {"train", "train run.toml --log.dir=run", Same::parameters},
    {"resume", "train --resume=begun --train.steps=4", Same::parameters},
    {"launch", "launch -n 2 --logs=logs -- train run.toml --parallel.pipe=2 --log.dir=run", Same::parameters},
    {"convert", "convert begun exported", Same::file, "exported/model.safetensors"},
    {"tokenize", "data tokenize text.txt --tokenizer bytes --out text.bin", Same::file, "text.bin"},
    {"learn", "data train-bpe text.txt --vocab 270 --out words.json", Same::file, "words.json"},
    {"plan", "plan run.toml --cluster cluster.toml --ranks 2 -o best.toml", Same::file, "best.toml"},
    {"eval", "eval begun --data text.txt --batches 1 --plain", Same::printed},
    {"chat", "generate begun --chat --prompt a --template t.jinja --tokens 3", Same::printed, "", true},
};
const std::vector<std::string> kinds{"alloc", "write", "fsync", "rename", "mmap", "thread", "fork"};

constexpr const char* run_file = R"([model]
layers = 2
width = 16
heads = 2
context = 8
vocab = 256
[data]
path = "text.txt"
validation = 0.1
[train]
steps = 3
batch = 4
microbatches = 2
validate_batches = 1
[checkpoint]
every = 1
[parallel]
timeout = 20
)";
constexpr const char* cluster_file = R"(ranks_per_node = 2
memory = 1e9
[machine]
flops = 1e9
memory_bandwidth = 1e9
[inside]
latency = 1e-6
bandwidth = 1e9
)";

class EveryCall : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    base_ = std::make_unique<Folder>();
    base_->write("text.txt", test::sentences(60));
    base_->write("run.toml", run_file);
    base_->write("cluster.toml", cluster_file);
    base_->write("t.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
    const Result r = test::stretto("train run.toml --log.dir=begun --train.steps=2", base_->str());
    ASSERT_EQ(r.code, 0) << r.error;
  }
  static void TearDownTestSuite() { base_.reset(); }

  // In a copy of the base, which is left in `there`.
  static Result run(const Command& c, const std::string& fault, const Folder& there) {
    fs::copy(base_->str(), there.str(), fs::copy_options::recursive);
    return run_in(there, c.arguments, fault);
  }
  static Result run_in(const Folder& there, const std::string& arguments, const std::string& fault) {
    const std::string counts = (there / "counts").string();
    return test::shell("timeout -s KILL 120 env LD_PRELOAD='" STRETTO_FAULT_SHIM "' STRETTO_FAULT=" + fault +
                           " STRETTO_FAULT_COUNTS=" + counts + " '" + test::binaries() + "/stretto' " + arguments,
                       there.str());
  }
  static std::map<std::string, long> counts_of(const Folder& there) {
    std::map<std::string, long> all;
    std::istringstream lines(text_of(there / "counts"));
    std::string kind;
    for (long n = 0; lines >> kind >> n;) all[kind] = n;
    return all;
  }
  static std::string hash_of(const fs::path& file) {
    const std::string text = text_of(file);
    return text.empty() ? "" : fmt::format("{:016x}", hash_bytes(text.data(), text.size()));
  }
  static std::string result_of(const Command& c, const Result& r, const Folder& there) {
    if (c.same == Same::file) return hash_of(there / c.file);
    if (c.same == Same::printed) return r.out;
    std::smatch m;
    return std::regex_search(r.out, m, std::regex("parameters [0-9a-f]{16}")) ? m.str() : "";
  }
  static std::vector<long> chosen(const std::string& kind, long count, unsigned seed) {
    std::vector<long> all;
    if (!std::getenv("STRETTO_LONG")) {
      if (count > 0) all.push_back(1 + long(std::mt19937(seed)() % unsigned(count)));
      return all;
    }
    for (long n = 1; n <= count; n += kind == "alloc" ? 1 + n / 40 : 1) all.push_back(n);
    return all;
  }
  static void expect_one_message(const Result& r, const std::string& what) {
    EXPECT_TRUE(r.code == 1 || r.code == 3) << what << " ends with code " << r.code << "\n" << r.error;
    static const std::regex message(R"((\[launch\] )?(rank \d+: )?\[[^\]]+\] .+)");
    int messages = 0;
    std::istringstream lines(r.error);
    for (std::string line; std::getline(lines, line);) messages += std::regex_match(line, message);
    EXPECT_GE(messages, 1) << what << " says\n" << r.error;
    EXPECT_LE(messages, 2) << what << " says\n" << r.error;
    EXPECT_EQ(r.error.find("this is a bug"), std::string::npos) << what << " says\n" << r.error;
  }
  // What was there before: the checkpoint of the run that had begun, or a newer one; no half of a file.
  static void expect_nothing_lost(const Command& c, const Folder& there, const std::string& whole,
                                  const std::string& what) {
    const Newest newest = newest_checkpoint(there / "begun/checkpoints");
    ASSERT_TRUE(newest.checkpoint) << what;
    EXPECT_GE(newest.checkpoint->manifest().step, 2) << what;
    EXPECT_TRUE(newest.damaged.empty()) << what << ": " << newest.damaged.front();
    EXPECT_TRUE(newest_checkpoint(there / "run/checkpoints").damaged.empty()) << what;
    if (c.same == Same::file && fs::exists(there / c.file)) {
      EXPECT_EQ(hash_of(there / c.file), whole) << what;
    }
  }

  static std::unique_ptr<Folder> base_;
};
std::unique_ptr<Folder> EveryCall::base_;

// What every command does before it is one: all of them are declared, with their options.
TEST_F(EveryCall, BeforeACommandIsChosen) {
  if (*STRETTO_FAULT_SHIM == 0) GTEST_SKIP() << "the sanitizer stands in front of the C library";
  const Folder there;
  ASSERT_EQ(run_in(there, "--version", "none:0").code, 0);
  const long count = counts_of(there)["alloc"];
  ASSERT_GT(count, 1000);
  for (long n = 1; n <= count; n += std::getenv("STRETTO_LONG") ? 1 : 29) {
    const std::string fault = "alloc:" + std::to_string(n);
    if (const Result r = run_in(there, "--version", fault); r.code != 0) expect_one_message(r, fault);
  }
}

class EveryCallOf : public EveryCall, public testing::WithParamInterface<Command> {};

TEST_P(EveryCallOf, FailsOnce) {
  const Command& c = GetParam();
  if (*STRETTO_FAULT_SHIM == 0) GTEST_SKIP() << "the sanitizer stands in front of the C library";
  if (std::string(c.name) == "launch" && !has_mpi()) GTEST_SKIP() << "built without MPI";
  if (c.renders) STRETTO_NEEDS_JINJA();
  const Folder whole;
  const Result good = run(c, "none:0", whole);
  ASSERT_EQ(good.code, 0) << good.error;
  const std::string result = result_of(c, good, whole);
  ASSERT_NE(result, "");
  unsigned seed = 1;
  for (const auto& kind : kinds) {
    const long count = counts_of(whole)[kind];
    int runs = 0, went_on = 0;
    for (const long n : chosen(kind, count, seed++)) {
      const std::string fault = kind + ":" + std::to_string(n), what = std::string(c.name) + " with " + fault;
      const Folder there;
      const Result r = run(c, fault, there);
      ++runs;
      if (r.code == 0) {
        ++went_on;
        EXPECT_EQ(result_of(c, r, there), result) << what << "\n" << r.out << r.error;
      } else {
        expect_one_message(r, what);
      }
      expect_nothing_lost(c, there, result, what);
    }
    if (std::getenv("STRETTO_LONG"))
      std::printf("%s %s: %ld calls, %d runs, %d went on\n", c.name, kind.c_str(), count, runs, went_on),
          std::fflush(stdout);
  }
}
INSTANTIATE_TEST_SUITE_P(Commands, EveryCallOf, testing::ValuesIn(commands),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stretto
