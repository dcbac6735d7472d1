#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include <filesystem>
#include <fstream>

#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

using testing::HasSubstr;

Result run(const std::string& arguments) { return stretto("check " + arguments, STRETTO_SOURCE); }

std::string written(const std::string& text) {
  const std::string path = testing::TempDir() + "/check_test.csv";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(Check, SumsUpWhatIsRight) {
  const Result r = run("--schedule zb-v --actors 4 --microbatches 8 --capacity 1 --memory 4");
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(r.out,
            "ok: zb-v\n"
            "actors              4\n"
            "stages              8\n"
            "microbatches        8\n"
            "actions             192\n"
            "messages            96 in 12 channels, at most 1 held in one\n"
            "smallest capacity   1\n"
            "deadlock-free at    capacity 1\n"
            "peak activations    4 4 4 4 (full stages, per actor)\n");
}

TEST(Check, SaysThatTheHeadLimitsAndWhatHelps) {
  const std::string wide = "examples/quickstart.toml --model.vocab=8000 --parallel.pipe=4 --parallel.schedule=1f1b ";
  EXPECT_THAT(run(wide).out,
              testing::ContainsRegex("limit    stage 3, the head, takes [0-9.]+% of the time, an actor's "
                                     "share is 25.0%: model.head_parts = [0-9]+ cuts it\n"));
  EXPECT_THAT(run(wide + "--model.head_parts=16").out, testing::Not(HasSubstr("limit    ")));
}

TEST(Check, FrozenWeightsTakeTheBytesOfTheirTypeOnce) {
  const std::string tuned =
      "examples/quickstart.toml --model.family=llama --parallel.data=4 --finetune.lora.rank=2 --parallel.pipe=1 "
      "--train.batch=32 --parallel.schedule=1f1b ";
  const auto frozen = [&](const std::string& settings) {
    const std::string out = run(tuned + settings).out;
    std::smatch found;
    return std::regex_search(out, found, std::regex("beside ([0-9.]+ [KM]iB) of frozen weights, shared by 4 ranks"))
               ? found[1].str()
               : out;
  };
  EXPECT_EQ(frozen(""), "3.32 MiB");
  EXPECT_EQ(frozen("--train.dtype=bf16"), "1.66 MiB");
  EXPECT_EQ(frozen("--model.frozen_dtype=bf16"), "1.66 MiB");
  EXPECT_EQ(frozen("--train.dtype=bf16 --model.frozen_dtype=f32"), "3.32 MiB");
  EXPECT_THAT(run("examples/quickstart.toml --model.frozen_dtype=bf16").error,
              HasSubstr("[command line] key 'model.frozen_dtype': nothing is frozen"));
  EXPECT_THAT(run(tuned + "--model.frozen_dtype=int4").error,
              HasSubstr("key 'model.frozen_dtype' is \"int4\" but must be one of f32, bf16"));
}

TEST(Check, GivenFiles) {
  const std::string data = "--schedule tests/files/schedules/";
  EXPECT_THAT(run(data + "dualpipev_4rank_10mb.csv --actors 4 --microbatches 10 --chunks 2").out,
              HasSubstr("4.5 4.5 4.5 4.5"));
  EXPECT_EQ(run(data + "zb1p_2rank_2stagep_comms.csv").code, 0);
  EXPECT_THAT(run(data + "chimera_p4_m4.csv --pipes logical").out, HasSubstr("smallest capacity   2"));
  EXPECT_EQ(run(data + "chimera_p4_m4.csv").code, 1);
}

TEST(Check, NamesAllFaultsWithAMarkedTable) {
  const Result r = run("--schedule " + written("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1F0,1B1\n") + " --actors 3 --memory 1");
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.error, HasSubstr("actor 1  [1F0]  1B0    1F1  [1F0]  1B1"));
  EXPECT_THAT(r.error, HasSubstr("[rows] 2 rows for 3 actors; hint: "));
  EXPECT_THAT(r.error, HasSubstr("the action stands twice"));
  EXPECT_THAT(r.error, HasSubstr("2 full-stage activations are live, the cap is 1"));
}

TEST(Check, DeadlockAtACapacity) {
  const Result r = run("--schedule 1f1b --actors 2 --microbatches 2 --capacity 0");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(
      r.error,
      HasSubstr("actor 0 waits at 0F1 (position 1) to send to actor 1 (no receive is posted), which waits at 1B0"));
  EXPECT_THAT(r.error, HasSubstr("a channel capacity of 1 is enough"));
  const Result pair = run("--schedule zb-v --actors 4 --microbatches 8 --fifo-per-pair");
  EXPECT_EQ(pair.code, 1);
  EXPECT_THAT(pair.error, HasSubstr("1 pair of messages would overtake each other in channel actor 2 -> 3"));
  const std::string swapped = written("0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1\n");
  EXPECT_EQ(run("--schedule " + swapped).code, 1);
  EXPECT_EQ(run("--schedule " + swapped + " --tagged").code, 0);
}

TEST(Check, DialectIsAnOption) {
  const std::string old = written("0F0,0B0,0W0,0F1,0BW1\n");
  EXPECT_THAT(run("--schedule " + old).error, HasSubstr("dialect old"));
  EXPECT_EQ(run("--schedule " + old + " --dialect old").code, 0);
  EXPECT_EQ(run("--schedule " + old + " --dialect older").code, 2);
}

TEST(Check, WrongUsage) {
  EXPECT_EQ(run("").code, 2);
  EXPECT_EQ(run("--schedule zb-v").code, 2);
  EXPECT_EQ(run("--schedule zb-v --actors -1").code, 2);
  EXPECT_EQ(run("--schedule nowhere.csv").code, 1);
  const Result beside = run("--train.steps=3 --capacity 0 --tagged --fifo-per-pair --actors 2");
  EXPECT_EQ(beside.code, 2);
  EXPECT_THAT(beside.error, HasSubstr("[check] --actors, --capacity, --fifo-per-pair, --tagged are options of a "
                                      "schedule that is given by --schedule, not of a run; hint: "));
  EXPECT_THAT(run("--schedule zbv --actors 2 --microbatches 2").error, HasSubstr("did you mean 'zb-v'"));
}

TEST(Check, SaysWhatTorchRefuses) {
  const Folder folder;
  Result r = stretto("check --schedule v-half --actors 4 --microbatches 8 --for torch", folder.str());
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("torch 2.15          takes it"));
  r = stretto("check --schedule dualpipe --actors 4 --microbatches 8 --for torch", folder.str());
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("[--for torch] 'dualpipe' has two pipes"));
  r = stretto("show --schedule zb-v --actors 2 --microbatches 4 -o zbv.csv --for torch", folder.str());
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("_load_csv(\"zbv.csv\", format=\"compute_only\")"));
  EXPECT_EQ(stretto("check --schedule zbv.csv --for torch", folder.str()).code, 0);
  r = stretto("show --schedule chimera --actors 2 --microbatches 4 -o no.csv --for torch", folder.str());
  EXPECT_EQ(r.code, 1);
  EXPECT_FALSE(std::filesystem::exists(folder / "no.csv"));
  r = stretto("show --schedule zb-v --actors 2 --microbatches 4 -o a.svg --for torch", folder.str());
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.error, HasSubstr("torch reads schedules as CSV, and a.svg is none; hint: -o FILE.csv"));
  EXPECT_EQ(stretto("show --schedule zb-v --actors 2 --microbatches 4 --for jax", folder.str()).code, 2);
}

}  // namespace
}  // namespace stretto::test
