#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <sstream>
#include <tuple>

#include "stretto/base/threads.h"
#include "stretto/formats/fields.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* plan_model = R"(
[model]
family = "llama"
layers = 4
width = 256
heads = 8
kv_heads = 4
ff = 768
context = 128
vocab = 512
[train]
batch = 16
dtype = "bf16"
)";

constexpr const char* plan_cluster = R"(
ranks_per_node = 4
memory = 4e9
[machine]
flops = 50e12
flops_bf16 = 300e12
memory_bandwidth = 2e12
[inside]
latency = 5e-6
bandwidth = 300e9
[between]
latency = 10e-6
bandwidth = 25e9
)";

// A folder with a run and a cluster, and the command in it.
class PlanCommandTest : public testing::Test {
 protected:
  PlanCommandTest() {
    folder_.write("run.toml", plan_model);
    folder_.write("cluster.toml", plan_cluster);
  }
  Result run(const std::string& arguments) { return stretto(arguments, folder_.str()); }
  Result plan(const std::string& arguments) { return run("plan run.toml --cluster cluster.toml " + arguments); }
  Folder folder_;
};

TEST_F(PlanCommandTest, JsonHasTheBestAndWhyNotTheOthers) {
  const Result r = plan("--ranks 4 --quick --json --parallel.context=1");
  ASSERT_EQ(r.code, 0) << r.error;
  const Field f = read_json(r.out, "plan");
  ASSERT_TRUE(f.find("best") && f.find("best")->array());
  const Field& best = f.find("best")->array()->front();
  EXPECT_GT(std::get<double>(best.find("seconds")->value), 0);
  EXPECT_TRUE(best.find("keys")->find("pipe") && best.find("memory")->find("activations"));
  EXPECT_FALSE(f.find("why_not")->array()->empty());
  EXPECT_EQ(plan("--ranks 4 --json --plain").code, 2) << "one form at a time";
}

// Ranks, positions per sequence and width of the runs that were measured.
TEST_F(PlanCommandTest, WhatIsOutsideOfTheRunsThatWereMeasuredIsSaid) {
  folder_.write("two.toml", std::string(plan_model) + "[parallel]\ndata = 2\n");
  folder_.write("four.toml", std::string(plan_model) + "[parallel]\npipe = 2\ntensor = 2\n");
  folder_.write("runs.tsv", "run\tseconds\ntwo.toml\t0.01\nfour.toml\t0.02\n");
  const Result r = run("calibrate cluster.toml --measured runs.tsv -o new.toml");
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(text_of(folder_ / "new.toml"),
              HasSubstr("[calibrated]\nruns = 2\nranks = [2, 4]\ncontext = [128, 128]\nwidth = [256, 256]\n"));
  ASSERT_EQ(run("calibrate new.toml --measured runs.tsv -o again.toml").code, 0);
  EXPECT_THAT(text_of(folder_ / "again.toml"), HasSubstr("runs = 2\n")) << "of these runs alone";

  const std::string larger = "extrapolated: 8 ranks; it was calibrated on 2 to 4 ranks";
  const auto simulated = [&](const std::string& arguments) { return run("simulate " + arguments).out; };
  EXPECT_THAT(simulated("two.toml --cluster new.toml"), Not(HasSubstr("extrapolated")));
  EXPECT_THAT(simulated("two.toml --cluster new.toml --parallel.data=8"), HasSubstr("\n" + larger + "\n"));
  EXPECT_THAT(simulated("two.toml --cluster new.toml --model.context=256 --model.width=128"),
              HasSubstr("extrapolated: context 256, width 128; it was calibrated on context 128, width 256\n"));
  EXPECT_THAT(simulated("two.toml --cluster cluster.toml --parallel.data=8"), Not(HasSubstr("extrapolated")));
  EXPECT_THAT(simulated("two.toml --cluster new.toml --parallel.data=8 --plain"), Not(HasSubstr("extrapolated")));

  const std::string plan_it = "plan run.toml --quick --parallel.context=1 --plan.schedules=1f1b --cluster ";
  const auto planned = [&](const std::string& arguments) { return run(plan_it + arguments).out; };
  EXPECT_THAT(planned("new.toml --ranks 4"), Not(HasSubstr("extrapolated")));
  EXPECT_THAT(planned("new.toml --ranks 8"), HasSubstr("\n" + larger + "\n"));
  EXPECT_THAT(planned("new.toml '--plan.ranks=[4, 8]'"), HasSubstr("; extrapolated\n")) << "of the curve";
  EXPECT_THAT(planned("new.toml --ranks 8 --plain"), Not(HasSubstr("extrapolated")));
  const auto field = [&](const std::string& arguments) {
    return read_json(planned(arguments + " --json"), "plan").find("extrapolated")->value;
  };
  EXPECT_EQ(std::get<std::string>(field("new.toml --ranks 8")), larger);
  EXPECT_EQ(std::get<std::string>(field("new.toml --ranks 4")), "");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(field("cluster.toml --ranks 8")));
  planned("new.toml --ranks 8 -o best.toml");
  EXPECT_THAT(text_of(folder_ / "best.html"), HasSubstr(larger));
}

// Both compile the run for the cluster, which chooses other cuts and orders than without one.
TEST_F(PlanCommandTest, CalibratePredictsWhatSimulateDoes) {
  for (const char* mesh : {"pipe = 4", "pipe = 2\ntensor = 2\nsequence = true", "pipe = 4\ndata = 2\nzero = 2"}) {
    folder_.write("one.toml", fmt::format("{}microbatches = 4\n[parallel]\n{}\n", plan_model, mesh));
    const Result s = run("simulate one.toml --cluster cluster.toml --plain");
    ASSERT_EQ(s.code, 0) << s.error;
    folder_.write("runs.tsv", fmt::format("run\tseconds\none.toml\t{}\n", cells(s.out)[1][0]));
    const Result r = run("calibrate cluster.toml --measured runs.tsv");
    ASSERT_EQ(r.code, 0) << r.error;
    EXPECT_THAT(r.out, HasSubstr("\nfactor   1\n")) << mesh;
  }
}

TEST_F(PlanCommandTest, CalibrateRefusesWhatNoFactorExplains) {
  folder_.write("runs.tsv", "run\tseconds\nrun.toml\t1e17\n");
  const Result r = run("calibrate cluster.toml --measured runs.tsv -o new.toml");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("times as long as cluster.toml predicts, which no calibration explains"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new.toml"));
}

// A stack that makes whole layers again has one word for it, whoever chose it.
TEST_F(PlanCommandTest, FullRecomputeIsWhatTheStackDoes) {
  folder_.write("stack.toml", "device = \"a100-80g\"\nstack = \"megatron-2021\"\n");
  const std::string mesh = "--parallel.pipe=2 --parallel.data=1 --parallel.tensor=1 --parallel.context=1 ";
  const Result r =
      run("plan run.toml --cluster stack.toml --ranks 2 --plain -o best.toml --plan.recompute=full " + mesh);
  ASSERT_EQ(r.code, 0) << r.error;
  const Result s = run("simulate best.toml --cluster stack.toml --plain");
  ASSERT_EQ(s.code, 0) << s.error;
  const double planned = std::stod(cells(r.out)[1][1]);
  EXPECT_NEAR(std::stod(cells(s.out)[1][0]), planned, 1e-3 * planned);

  folder_.write("list.tsv", "pipe\tmicrobatches\trecompute\n2\t4\tfull\n");
  const Result list = run("plan run.toml --cluster stack.toml --candidates list.tsv");
  ASSERT_EQ(list.code, 0) << list.error;
  const Result one =
      run("simulate run.toml --cluster stack.toml --plain --parallel.pipe=2 --train.microbatches=4 "
          "--parallel.recompute=full");
  const double simulated = std::stod(cells(one.out)[1][0]);
  EXPECT_NEAR(std::stod(cells(list.out)[1][2]), simulated, 1e-3 * simulated);
}

TEST_F(PlanCommandTest, HoursOfRanksChooseAmongNumbersOfThem) {
  const std::string several = "--quick --parallel.context=1 '--plan.ranks=[1, 4]' --json ";
  const auto ranks = [&](const std::string& objective) {
    const Result r = plan(several + "--plan.objective=" + objective);
    EXPECT_EQ(r.code, 0) << r.error;
    return std::get<i64>(read_json(r.out, "plan").find("ranks")->value);
  };
  EXPECT_EQ(ranks("time"), 4);
  EXPECT_EQ(ranks("rank_hours"), 1) << "four ranks are not four times as fast";
}

TEST_F(PlanCommandTest, AHeadInPartsIsPlannedAsItIs) {
  const Result r = plan("--ranks 4 --plain --parallel.pipe=4 --parallel.context=1 --model.head_parts=3 -o best.toml");
  ASSERT_EQ(r.code, 0) << r.error;
  const Result s = run("simulate best.toml --cluster cluster.toml --plain");
  ASSERT_EQ(s.code, 0) << s.error;
  EXPECT_NEAR(std::stod(cells(s.out)[1][0]), std::stod(cells(r.out)[1][1]), 1e-3 * std::stod(cells(r.out)[1][1]));
}

TEST_F(PlanCommandTest, WritesARunThatSimulatesToTheSameNumber) {
  const Result r = plan("--ranks 4 --plain --parallel.context=1 -o best.toml");
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.error, HasSubstr("tried="));
  const auto rows = cells(r.out);
  ASSERT_GT(rows.size(), 3u);
  EXPECT_EQ(rows[0][1], "seconds");
  const Result s = run("simulate best.toml --cluster cluster.toml --plain");
  ASSERT_EQ(s.code, 0) << s.error;
  EXPECT_NEAR(std::stod(cells(s.out)[1][0]), std::stod(rows[1][1]), 1e-3 * std::stod(rows[1][1]));
  EXPECT_NEAR(std::stod(cells(s.out)[1][4]), std::stod(rows[1][4]), 1e-3 * std::stod(rows[1][4]));
  const std::string page = text_of(folder_ / "best.html");
  EXPECT_THAT(page, HasSubstr("Time and memory"));
  EXPECT_THAT(page, HasSubstr("runner-up"));
}

TEST_F(PlanCommandTest, SaysWhyNotAndWhereMemoryGoes) {
  const Result r = plan("--ranks 4 --parallel.context=1 --plan.margin=0.05 '--plan.schedules=[\"1f1b\",\"zb-h1\"]'");
  ASSERT_EQ(r.code, 0) << r.error;
  for (const char* word : {"model  ", "cluster  ", "searched ", "why not  ", "memory   ", "what if  ", "limited by",
                           "as good within 5%: "})
    EXPECT_THAT(r.out, HasSubstr(word));
}

TEST_F(PlanCommandTest, GivenKeysAreFixedAndPlanNarrows) {
  const Result r =
      plan("--ranks 4 --quick --plain --parallel.tensor=2 '--plan.zero=[1]' '--plan.recompute=[\"full\"]'");
  ASSERT_EQ(r.code, 0) << r.error;
  const auto rows = cells(r.out);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i][8], "2");
    EXPECT_EQ(rows[i][12], "1");
    EXPECT_EQ(rows[i][16], "full");
  }
}

TEST_F(PlanCommandTest, NothingFitsWithTheNearestAndARemedy) {
  folder_.write("cluster.toml", std::string(plan_cluster).replace(std::string(plan_cluster).find("4e9"), 3, "3e7"));
  const Result r = plan("--ranks 1");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("nothing fits 30 MB on 1 rank: the closest needs"));
  EXPECT_THAT(r.error, HasSubstr("hint: "));
}

// Each hint is followed, and then something fits.
TEST_F(PlanCommandTest, WhatIsProposedFits) {
  const std::string large = "--ranks 4 --parallel.context=1 --model.context=1024 --train.batch=64 ";
  const auto says = [&](const std::string& arguments) {
    const Result r = plan(large + arguments);
    EXPECT_EQ(r.code, 1) << r.out;
    return r.error;
  };
  const std::string data = "--parallel.pipe=1 --parallel.tensor=1 ",
                    many = "--train.microbatches=1 --parallel.recompute=none ";
  EXPECT_THAT(says(data + many + "--plan.memory=0.05"),
              testing::AllOf(HasSubstr("activations"), HasSubstr("states alone would fit with"),
                             HasSubstr("hint: plan.memory = 0.")));
  const std::string fixed = says(data + many + "--plan.memory=0.05");
  EXPECT_THAT(fixed, HasSubstr("leave "));
  const std::string key = fixed.substr(fixed.find("leave ") + 6, fixed.find(" open") - fixed.find("leave ") - 6);
  EXPECT_EQ(plan(large + data + many + "--plan.memory=0.05 --" + key + "=auto").code, 0) << key;
  const std::string share = fixed.substr(fixed.find("plan.memory = ") + 14, 4);
  EXPECT_EQ(plan(large + data + many + "--plan.memory=" + share).code, 0) << share;
  EXPECT_THAT(says(data + "--parallel.zero=0 --plan.memory=0.005"), HasSubstr("states alone are"));
}

TEST_F(PlanCommandTest, MistakesAreNamed) {
  const auto says = [&](const std::string& arguments) {
    const Result r = plan(arguments);
    EXPECT_NE(r.code, 0) << arguments;
    return r.error;
  };
  EXPECT_THAT(says(""),
              HasSubstr("nothing says how many ranks there are; hint: --ranks 64, plan.ranks = 64 in the run\n"));
  EXPECT_EQ(plan("--quick --plan.ranks=4").code, 0) << "as that says";
  EXPECT_THAT(says("--ranks 4 --parallel.tensor=3"), HasSubstr("tensor = 3 does not divide 4 ranks"));
  EXPECT_THAT(says("--ranks 31"), HasSubstr("no mesh of 31 ranks is possible"));
  EXPECT_THAT(says("--ranks 31"), HasSubstr("28 ranks are possible, and 3 stay idle"));
  EXPECT_THAT(says("--ranks 3 --parallel.pipe=1 --parallel.tensor=1 --parallel.context=1"),
              HasSubstr("data = 3 does not divide a batch of 16; hint: use train.batch = 15 or 18"));
  EXPECT_THAT(says("--ranks 4 '--plan.schedules=[\"zb-w\"]'"), HasSubstr("there is no 'zb-w'; hint: did you mean"));
  EXPECT_THAT(says("--ranks 4 '--plan.recompute=[\"some\"]'"), HasSubstr("there is no 'some'"));
  EXPECT_THAT(says("--ranks 4 '--parallel.recompute=[\"none\", \"full\"]'"),
              HasSubstr("recompute differs from stage to stage, and stages are what is chosen"));
  EXPECT_THAT(says("--ranks 4 --parallel.tensor=4 '--plan.tensor=[1, 2]'"),
              HasSubstr("parallel.tensor is 4, which [plan] does not allow: 1, 2; hint: leave one of the two out"));
  EXPECT_THAT(says("--ranks 4 --parallel.recompute=full '--plan.recompute=[\"none\"]'"),
              HasSubstr("parallel.recompute is full, which [plan] does not allow: none"));
  EXPECT_THAT(says("--ranks 4 --parallel.depth=2"), HasSubstr("depth is no part of what is planned"));
  EXPECT_THAT(says("--ranks 4 '--parallel.mesh={a = 2}'"), HasSubstr("mesh is no part of what is planned"));
  folder_.write("other.toml", "device = \"h100-sxn\"\n");
  EXPECT_THAT(run("plan run.toml --ranks 4 --cluster other.toml").error, HasSubstr("did you mean 'h100-sxm'?"));
  EXPECT_THAT(says("--ranks 4 --parallel.zero=2 --parallel.data=1"),
              HasSubstr("zero = 2 cuts over the data axis, and data is 1; hint: leave one of these keys open"));
  folder_.write("list.tsv", "pipe\n2\n");
  EXPECT_THAT(run("plan run.toml --ranks 4 --candidates list.tsv").error,
              HasSubstr("--ranks and --candidates exclude each other"));
  EXPECT_THAT(run("plan --cluster cluster.toml").error, HasSubstr("no run is given"));
}

TEST_F(PlanCommandTest, NoLinkBetweenNodes) {
  const std::string text = plan_cluster;
  folder_.write("cluster.toml", text.substr(0, text.find("[between]")));
  const Result r = plan("--ranks 8");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("has no [between], and 8 ranks are on 2 nodes of 4"));
}

TEST_F(PlanCommandTest, CandidatesKeepTheirOrderAndIds) {
  folder_.write("list.tsv", "id\tpipe\tdata\tmicrobatches\na\t2\t2\t4\nb\t1\t3\t1\nc\t1\t4\t1\nd\t4\n");
  const Result r = plan("--candidates list.tsv");
  ASSERT_EQ(r.code, 0) << r.error;
  const auto rows = cells(r.out);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[1][0], "a");
  EXPECT_GT(std::stod(rows[1][2]), 0);
  EXPECT_EQ(rows[2][0], "b");
  EXPECT_THAT(rows[2].back(), HasSubstr("data = 3 does not divide a batch of 16"));
  EXPECT_EQ(rows[3][0], "c");
  EXPECT_THAT(rows[4].back(), HasSubstr("2 values for 4 columns"));
}

TEST_F(PlanCommandTest, AListThatIsWrongIsRefusedAsAWhole) {
  const auto says = [&](const std::string& text, const std::string& more = "") {
    folder_.write("list.tsv", text);
    const Result r = plan("--candidates list.tsv " + more);
    EXPECT_NE(r.code, 0) << text;
    EXPECT_EQ(r.out, "") << text;
    return r.error;
  };
  EXPECT_THAT(says(""), HasSubstr("[list.tsv] its first line is empty; hint: its first line has keys"));
  EXPECT_THAT(says("id\tpipe\n"), HasSubstr("[list.tsv] there is no candidate in it"));
  EXPECT_THAT(says("id\tpip\na\t2\n"),
              HasSubstr("[list.tsv:1] the column 'pip' is no key of a run; hint: did you mean"));
  EXPECT_THAT(says("pipe,data\n2,2\n"), HasSubstr("the column 'pipe,data' is no key of a run; hint: its first line"));
  EXPECT_THAT(says("pipe\tdata\tpipe\n1\t1\t1\n"), HasSubstr("the column 'pipe' stands there twice"));
  EXPECT_THAT(says("pipe\tparallel.pipe\n1\t1\n"), HasSubstr("two columns are parallel.pipe"));
  EXPECT_THAT(says("pipe\n1\n", "--model.layers=0"), HasSubstr("key 'model.layers' is 0")) << "of the run, not of each";
  EXPECT_THAT(says("pipe\n1\n", "--json"), HasSubstr("--json and --candidates exclude each other"));
  EXPECT_THAT(says("pipe\n1\n", "-o best.toml"), HasSubstr("--output and --candidates exclude each other"));
  folder_.write("list.tsv", "id\tpipe\r\na\t2\r\n");
  EXPECT_EQ(cells(plan("--candidates list.tsv").out)[1][0], "a") << "with the line ends of Windows";
  EXPECT_THAT(plan("--candidates list.tsv --parallel.depth=2").out, HasSubstr("depth is no part of what is planned"));
}

TEST_F(PlanCommandTest, NothingThatIsReadIsWrittenOver) {
  const auto says = [&](const std::string& arguments) {
    const Result r = plan("--ranks 4 --quick " + arguments);
    EXPECT_NE(r.code, 0) << arguments;
    EXPECT_EQ(r.out, "") << arguments;
    return r.error;
  };
  EXPECT_THAT(says("-o run.toml"), HasSubstr("run.toml would be written over run.toml, which is read"));
  EXPECT_THAT(says("-o ./cluster.toml"), HasSubstr("./cluster.toml would be written over cluster.toml, which is read"));
  EXPECT_EQ(text_of(folder_ / "run.toml"), plan_model);
  EXPECT_EQ(text_of(folder_ / "cluster.toml"), plan_cluster);
  std::filesystem::create_directories(folder_ / "out/best.html");
  EXPECT_THAT(says("-o out"), HasSubstr("hint: -o out/best.toml"));
  EXPECT_THAT(says("-o out/.toml"), HasSubstr("hint: -o out/best.toml"));
  EXPECT_THAT(says("-o best.html"), HasSubstr("hint: -o best.toml"));
  EXPECT_THAT(says("-o out/best.toml"), HasSubstr("[out/best.html] is a directory, not a file")) << "before the search";
  folder_.write("runs.tsv", "run\tseconds\nnowhere.toml\t1\n");
  EXPECT_THAT(says("-o best.toml --measured runs.tsv"), HasSubstr("[runs.tsv:2] there is no run 'nowhere.toml'"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "best.toml"));
  folder_.write("runs.tsv", "run\tseconds\nrun.toml\t1\n");
  EXPECT_THAT(run("calibrate cluster.toml --measured runs.tsv -o run.toml").error,
              HasSubstr("run.toml would be written over run.toml, which is read"));
  EXPECT_EQ(text_of(folder_ / "run.toml"), plan_model);
}

// Memory for which recompute has to differ: the run that is written has a list, and lists of candidates may, too.
TEST_F(PlanCommandTest, RecomputeMayDifferFromStageToStage) {
  const std::string mesh =
      "--parallel.pipe=4 --parallel.data=1 --parallel.tensor=1 --parallel.context=1 --train.microbatches=16 "
      "--parallel.schedule=1f1b --model.context=1024 --model.width=512 ";
  folder_.write("list.tsv",
                "id\tpipe\tmicrobatches\trecompute\na\t4\t16\tnone\nb\t4\t16\tfull\n"
                "c\t4\t16\t[\"full\",\"full\",\"none\",\"none\"]\nd\t4\t16\t[\"full\",\"none\"]\n");
  const Result list = plan("--candidates list.tsv --model.context=1024 --model.width=512");
  ASSERT_EQ(list.code, 0) << list.error;
  const auto scored = cells(list.out);
  EXPECT_EQ(scored[3][17], "full*2,none*2");
  EXPECT_THAT(scored[4].back(), HasSubstr("recompute of 2 stages is given, and pipe x chunks is 4"));
  const double most = std::stod(scored[1][5]), least = std::stod(scored[2][5]);
  const std::string memory = fmt::format("memory = {}", least + 0.3 * (most - least));
  folder_.write("cluster.toml",
                std::string(plan_cluster).replace(std::string(plan_cluster).find("memory = 4e9"), 12, memory));
  const Result r = plan("--ranks 4 --plain -o best.toml '--plan.recompute=[\"none\",\"full\"]' " + mesh);
  ASSERT_EQ(r.code, 0) << r.error;
  const auto rows = cells(r.out);
  EXPECT_THAT(rows[1][16], HasSubstr("none")) << "only some make everything again";
  EXPECT_THAT(rows[1][16], HasSubstr("full"));
  EXPECT_THAT(text_of(folder_ / "best.toml"), HasSubstr("recompute = [\"full\""));
  const Result s = run("simulate best.toml --cluster cluster.toml --plain");
  ASSERT_EQ(s.code, 0) << s.error;
  EXPECT_NEAR(std::stod(cells(s.out)[1][0]), std::stod(rows[1][1]), 1e-3 * std::stod(rows[1][1]));
  EXPECT_NEAR(std::stod(cells(s.out)[1][4]), std::stod(rows[1][4]), 1e-3 * std::stod(rows[1][4]));
}

TEST_F(PlanCommandTest, AutoIsRefusedWhereNothingChooses) {
  const Result r = run("simulate run.toml --cluster cluster.toml --parallel.pipe=auto");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("key 'parallel.pipe' is \"auto\""));
  EXPECT_THAT(r.error, HasSubstr("stretto plan"));
}

TEST_F(PlanCommandTest, TrainPlansFirst) {
  const Result r = stretto(
      "train --model.layers=1 --model.width=32 --model.heads=2 --model.context=16 --train.steps=1 "
      "--train.batch=4 --parallel.pipe=auto --parallel.context=1 --checkpoint.keep=0 --log.dir=" +
          (folder_ / "out").string(),
      STRETTO_SOURCE);
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("planned  "));
}

// Ranks and threads are chosen together; every other split of the cores is named.
TEST_F(PlanCommandTest, AllOfParallelMayBeAuto) {
  const std::string small = "--model.layers=1 --model.width=32 --model.heads=2 --model.context=16 --train.batch=4 ";
  const Result r = stretto(
      "train --parallel=auto --train.steps=1 --checkpoint.keep=0 --log.dir=" + (folder_ / "out").string() + " " + small,
      STRETTO_SOURCE);
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, AllOf(HasSubstr("planned  "), HasSubstr(" thread"), HasSubstr("for this machine")));
  if (usable_cores().size() == 2) {
    EXPECT_THAT(r.out, AllOf(HasSubstr("1 rank × 2 threads"), HasSubstr("2 ranks, ")));
  }
  folder_.write("pipe.toml", "[parallel]\npipe = 2\nthreads = 1\n");  // of a section what is not searched holds
  const Result instead = stretto("train " + (folder_ / "pipe.toml").string() + " --parallel=auto --train.steps=1 " +
                                     "--checkpoint.keep=0 --log.dir=" + (folder_ / "instead").string() + " " + small,
                                 STRETTO_SOURCE);
  ASSERT_EQ(instead.code, 0) << instead.error;
  EXPECT_THAT(instead.out, AllOf(HasSubstr("planned  "), HasSubstr(" × 1 thread")));
  folder_.write("auto.toml", "parallel = \"auto\"\n" + std::string(plan_model));
  const Result planned = run("plan auto.toml --quick");
  ASSERT_EQ(planned.code, 0) << planned.error;
  EXPECT_THAT(planned.out, HasSubstr("this machine"));
  const Result wrong = run("train run.toml --parallel=fast");
  EXPECT_NE(wrong.code, 0);
}

// Whatever is chosen for other software, stages take whole layers, and what is written is what was predicted.
TEST_F(PlanCommandTest, WritesArgumentsOfOtherSoftware) {
  for (const auto& [target, file, has] : {std::tuple("megatron", "best.sh", "--pipeline-model-parallel-layout 'E"),
                                          {"torchtitan", "best.toml", "layers.3"},
                                          {"jaxpp", "best.py", "jaxpp.MpmdMesh"},
                                          {"deepspeed", "best.json", "train_micro_batch_size_per_gpu"}}) {
    const Result r = plan(fmt::format("--ranks 4 --parallel.pipe=2 --quick --for {} -o {}", target, file));
    EXPECT_EQ(r.code, 0) << r.out << r.error;
    EXPECT_THAT(r.out, AllOf(HasSubstr(fmt::format("for      {}: pipe 2 ", target)), HasSubstr("a rank predicted"),
                             HasSubstr("left out "), HasSubstr(fmt::format("written  {}", file))));
    EXPECT_THAT(text_of(folder_ / file), HasSubstr(has)) << target;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "best.html"));
}

TEST_F(PlanCommandTest, SaysWhatOtherSoftwareCannotHave) {
  EXPECT_THAT(plan("--ranks 4 --for megatrom").error,
              HasSubstr("plans are not written for 'megatrom'; hint: did you mean"));
  EXPECT_THAT(plan("--ranks 4 --for megatron@0.5").error, HasSubstr("'megatron@0.5' names a version"));
  EXPECT_THAT(
      plan("--ranks 4 --for megatron --parallel.zero=3").error,
      HasSubstr("[--for megatron] parallel.zero = 3 has no counterpart in megatron-core 0.16.1; hint: there are 0, 1"));
  const Result r = plan("--ranks 4 --for megatron -o best.toml");
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(
      r.error,
      HasSubstr("-o names the file for megatron, which ends in .sh, and 'best.toml' does not; hint: -o best.sh"));
  EXPECT_THAT(plan("--ranks 8 --parallel.pipe=8 --for deepspeed").error,
              HasSubstr("none has a counterpart in the software they are for"))
      << "of 4 layers";
}

}  // namespace
}  // namespace stretto::test
