#include "stretto/cost/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::Folder;
using testing::HasSubstr;

std::string written(const Folder& folder, const std::string& text) {
  folder.write("cluster.toml", text);
  return (folder / "cluster.toml").string();
}

TEST(ClusterFile, IsReadAsItWasWritten) {
  const Folder folder;
  ClusterFile file{.memory = 80e9};
  file.cluster = {.machine = {.flops = 3.1e14, .memory_bandwidth = 2.03e12},
                  .inside = {3.3e-6, 3.1e11},
                  .between = {1e-5, 4.9e10},
                  .ranks_per_node = 4};
  const ClusterFile again = read_cluster(written(folder, cluster_toml(file, {"two nodes", "of four"})));
  EXPECT_EQ(again.cluster, file.cluster);
  EXPECT_EQ(again.memory, 80e9);
  EXPECT_TRUE(again.inside && again.between);
}

TEST(ClusterFile, TheBenchmarksFileIsOne) {
  const ClusterFile file = read_cluster(STRETTO_SOURCE "/bench/cluster.toml", {"machine.flops=1e12"});
  EXPECT_EQ(file.cluster.ranks_per_node, 4);
  EXPECT_EQ(file.cluster.machine.flops, 1e12);
  EXPECT_NO_THROW(check_ranks(file, 16));
}

TEST(ClusterFile, MistakesAreSaidTogether) {
  const Folder folder;
  const std::string text = refusal_of([&] {
    read_cluster(
        written(folder, "ranks_per_node = 0\n[inside]\nlatncy = 1e-6\nbandwidth = -1\n[machine]\nflops = \"x\"\n"));
  });
  EXPECT_THAT(text, HasSubstr("cluster.toml:1] key 'ranks_per_node' is 0"));
  EXPECT_THAT(text, HasSubstr("'inside.latncy' is unknown; hint: did you mean 'inside.latency'?"));
  EXPECT_THAT(text, HasSubstr("'inside.bandwidth' is -1"));
  EXPECT_THAT(text, HasSubstr("'machine.flops' is \"x\""));
  // Times with it could be neither added up nor printed.
  EXPECT_THAT(refusal_of([&] { read_cluster(written(folder, "[inside]\nbandwidth = 1e-300\n")); }),
              HasSubstr("'inside.bandwidth' is 1e-300 but must be a number from 1 to"));
}

TEST(ClusterFile, RanksThatNeedALinkWhichIsNotGivenAreRefused) {
  const Folder folder;
  const ClusterFile one = read_cluster(written(folder, "ranks_per_node = 4\n[inside]\nbandwidth = 1e9\n"));
  EXPECT_NO_THROW(check_ranks(one, 4));
  EXPECT_THAT(refusal_of([&] { check_ranks(one, 8); }), HasSubstr("has no [between], and 8 ranks are on 2 nodes of 4"));
  const ClusterFile apart = read_cluster(written(folder, "ranks_per_node = 2\n[between]\nbandwidth = 1e9\n"));
  EXPECT_NO_THROW(check_ranks(apart, 1));
  EXPECT_THAT(refusal_of([&] { check_ranks(apart, 2); }), HasSubstr("has no [inside]"));
}

}  // namespace
}  // namespace stretto
