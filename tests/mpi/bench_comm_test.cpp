// `stretto bench comm` between processes.
#include "processes.h"
#include "stretto/cost/cluster_file.h"

namespace stretto {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

using BenchComm = test::Processes;

TEST_F(BenchComm, MeasuresProcessesThatShareMemory) {
  const test::Result r = launch(2, "bench comm --parallel.data=2 -o cluster.toml");
  ASSERT_EQ(r.code, 0) << r.error << log(1);
  EXPECT_THAT(r.out, HasSubstr("2 processes on 1 node"));
  EXPECT_THAT(r.out, ContainsRegex("message +data +2 +1 +1024"));
  EXPECT_THAT(r.out, ContainsRegex("all_to_all +data +2 +1 +16777216"));
  EXPECT_EQ(read_cluster((folder_ / "cluster.toml").string()).cluster.ranks_per_node, 2);
}

TEST_F(BenchComm, MeasuresMessagesAlone) {
  const test::Result r = launch(2, "bench comm --parallel.data=2 --no-shared-memory");
  ASSERT_EQ(r.code, 0) << r.error << log(1);
  EXPECT_THAT(r.out, ContainsRegex("all_reduce +data +2 +1 +16777216"));
}

TEST_F(BenchComm, TheMeshMustHaveAsManyRanks) {
  const test::Result r = launch(3, "bench comm --parallel.data=2");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("data=2 has 2 ranks"));
}

}  // namespace
}  // namespace stretto
