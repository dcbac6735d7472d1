#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "stretto/formats/fields.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

using testing::HasSubstr;

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
  const Result r = plan("--ranks 4 --parallel.context=1 '--plan.schedules=[\"1f1b\",\"zb-h1\"]'");
  ASSERT_EQ(r.code, 0) << r.error;
  for (const char* word : {"model  ", "cluster  ", "searched ", "why not  ", "memory   ", "what if  ", "limited by"})
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

TEST_F(PlanCommandTest, MistakesAreNamed) {
  const auto says = [&](const std::string& arguments) {
    const Result r = plan(arguments);
    EXPECT_NE(r.code, 0) << arguments;
    return r.error;
  };
  EXPECT_THAT(says(""), HasSubstr("nothing says how many ranks there are; hint: --ranks 64"));
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
  EXPECT_THAT(says("--ranks 4 --model.head_parts=2"),
              HasSubstr("model.head_parts is 2, and plans are made with the head as one piece; hint: plan with 1"));
  EXPECT_THAT(says("--ranks 4 --parallel.depth=2"), HasSubstr("depth is no part of what is planned"));
  EXPECT_THAT(says("--ranks 4 '--parallel.mesh={a = 2}'"), HasSubstr("mesh is no part of what is planned"));
  EXPECT_THAT(run("plan run.toml --ranks 4").error, HasSubstr("no cluster is given"));
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

}  // namespace
}  // namespace stretto::test
