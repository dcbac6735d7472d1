#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/cost/cluster_file.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

TEST(BenchComm, WritesTheFileThatSimulateReads) {
  const Folder folder;
  const std::string file = (folder / "cluster.toml").string();
  const Result measured = stretto("bench comm --parallel.data=2 -o " + file, STRETTO_SOURCE);
  ASSERT_EQ(measured.code, 0) << measured.error;
  EXPECT_THAT(measured.out, HasSubstr("2 threads of one process"));
  EXPECT_THAT(measured.out, ContainsRegex("all_reduce +data +2 +1 +16777216"));
  EXPECT_THAT(measured.out, ContainsRegex("inside   [^\n]* and [^\n]*/s"));
  const ClusterFile cluster = read_cluster(file);
  EXPECT_EQ(cluster.cluster.ranks_per_node, 2);
  EXPECT_TRUE(cluster.inside);
  EXPECT_FALSE(cluster.between);

  const std::string run =
      "simulate examples/quickstart.toml --parallel.pipe=1 --parallel.schedule=1f1b --parallel.data=2 --cluster " +
      file;
  const Result simulated = stretto(run, STRETTO_SOURCE);
  ASSERT_EQ(simulated.code, 0) << simulated.error;
  EXPECT_THAT(simulated.out, HasSubstr("1 node of 2"));
  EXPECT_THAT(simulated.out, HasSubstr("sums     of gradients take"));
}

TEST(BenchComm, OneRankIsRefused) {
  const Result r = stretto("bench comm", STRETTO_SOURCE);
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("there is one rank"));
  EXPECT_EQ(stretto("bench com", STRETTO_SOURCE).code, 2);
}

TEST(SimulateRun, ASlowerLinkTakesLonger) {
  const Folder folder;
  const auto seconds = [&](const std::string& bandwidth) {
    folder.write(
        "cluster.toml",
        "ranks_per_node = 1\n[machine]\nflops = 1e11\n[between]\nlatency = 1e-6\nbandwidth = " + bandwidth + "\n");
    const Result r =
        stretto("simulate examples/quickstart.toml --parallel.pipe=2 --parallel.data=2 --plain --cluster " +
                    (folder / "cluster.toml").string(),
                STRETTO_SOURCE);
    EXPECT_EQ(r.code, 0) << r.error;
    EXPECT_THAT(r.out, testing::StartsWith("seconds\ttokens_per_second\tsums\texposed\tbytes\tproducts\t"));
    return std::stod(r.out.substr(r.out.find('\n') + 1));
  };
  EXPECT_GT(seconds("1e6"), 2 * seconds("1e12"));
}

TEST(SimulateRun, DrawsItsTimelineAndRefusesWhatDoesNotFit) {
  const Folder folder;
  folder.write("cluster.toml", "ranks_per_node = 2\nmemory = 1e3\n[inside]\nbandwidth = 1e9\n");
  const std::string file = (folder / "cluster.toml").string(), page = (folder / "step.html").string();
  const Result r =
      stretto("simulate examples/quickstart.toml --parallel.pipe=2 --cluster " + file + " -o " + page, STRETTO_SOURCE);
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("the run does not fit"));
  EXPECT_THAT(text_of(page), AllOf(HasSubstr("<html"), HasSubstr("\"seconds\":true")));
  const Result more = stretto("simulate examples/quickstart.toml --parallel.pipe=4 --cluster " + file, STRETTO_SOURCE);
  EXPECT_EQ(more.code, 1);
  EXPECT_THAT(more.error, HasSubstr("has no [between], and 4 ranks are on 2 nodes of 2"));
  const Result both =
      stretto("simulate examples/quickstart.toml --schedule 1f1b --actors 2 --microbatches 2", STRETTO_SOURCE);
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.error, HasSubstr("a run and schedules are given"));
  const Result units = stretto("simulate examples/quickstart.toml --times F=5 --contention", STRETTO_SOURCE);
  EXPECT_EQ(units.code, 2);
  EXPECT_THAT(units.error, HasSubstr("[simulate] --times, --contention are options of a schedule"));
}

}  // namespace
}  // namespace stretto::test
