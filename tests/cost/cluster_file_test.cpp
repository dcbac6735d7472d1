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

constexpr const char* calibrated_section =
    "[calibrated]\nruns = 5\nranks = [2, 16]\ncontext = [512, 2048]\nwidth = [256, 256]\n";

TEST(ClusterFile, WhatItWasCalibratedOnIsReadAsItWasWritten) {
  const Folder folder;
  CalibratedOn on;
  for (const RunSizes& s : {RunSizes{8, 512, 256}, RunSizes{2, 2048, 256}, RunSizes{16, 1024, 256}}) on.add(s);
  EXPECT_EQ(on, (CalibratedOn{.runs = 3, .least = {2, 512, 256}, .most = {16, 2048, 256}}));
  for (const char* kind : {"device = \"a100-80g\"\n", "[machine]\nflops = 1e12\n"}) {
    ClusterFile file = read_cluster(written(folder, kind));
    EXPECT_EQ(file.calibrated, std::nullopt);
    file.calibrated = on;
    EXPECT_EQ(read_cluster(written(folder, cluster_toml(file))).calibrated, on) << kind;
    on.runs = 5;
    EXPECT_EQ(read_cluster(written(folder, std::string(kind) + calibrated_section)).calibrated, on) << kind;
  }
}

TEST(ClusterFile, WhatIsOutsideOfWhatItWasCalibratedOnIsSaid) {
  const Folder folder;
  const ClusterFile file = read_cluster(written(folder, calibrated_section));
  for (const RunSizes& s : {RunSizes{2, 512, 256}, RunSizes{16, 2048, 256}}) EXPECT_EQ(extrapolated(file, s), "");
  EXPECT_EQ(extrapolated(file, {1024, 512, 256}), "extrapolated: 1024 ranks; it was calibrated on 2 to 16 ranks");
  EXPECT_EQ(extrapolated(file, {1, 511, 257}),
            "extrapolated: 1 rank, context 511, width 257; it was calibrated on 2 to 16 ranks, context 512 to 2048, "
            "width 256");
  EXPECT_EQ(extrapolated(ClusterFile{}, {1024, 512, 256}), "") << "nothing is known";
}

TEST(ClusterFile, MistakesInWhatItWasCalibratedOnAreSaidTogether) {
  const Folder folder;
  const auto refused = [&](const char* text) { return refusal_of([&] { read_cluster(written(folder, text)); }); };
  const std::string text =
      refused("[calibrated]\nruns = 0\nranks = [16, 2]\ncontext = \"long\"\nwidth = [1, 2, 3]\nwidht = [1, 2]\n");
  const std::string hint = "; hint: [calibrated] is as stretto calibrate -o writes it, e.g. runs = 5, ranks = [2, 16]";
  EXPECT_THAT(text, HasSubstr("cluster.toml:2] key 'calibrated.runs' is 0 but must be a whole number from 1 to"));
  for (const char* wrong :
       {"3] key 'calibrated.ranks' is [16, 2] but must be two numbers, the smallest and the largest",
        "4] key 'calibrated.context' is \"long\" but must be a list of whole numbers",
        "5] key 'calibrated.width' is [1, 2, 3] but must be two numbers"})
    EXPECT_THAT(text, HasSubstr(wrong));
  EXPECT_THAT(text, HasSubstr("the smallest and the largest" + hint));
  EXPECT_THAT(text, HasSubstr("6] key 'calibrated.widht' is unknown; hint: did you mean 'calibrated.width'?"));
  EXPECT_THAT(refused("[calibrated]\nruns = 1\nranks = [0, 2]\ncontext = [1.5, 2]\n"),
              testing::AllOf(HasSubstr("'calibrated.ranks[0]' is 0 but"), HasSubstr("'calibrated.context[0]' is 1.5"),
                             HasSubstr("key 'calibrated.width' is missing" + hint)));
  const std::string number = refused("calibrated = 3\n");
  EXPECT_THAT(number, HasSubstr("key 'calibrated' is 3 but must be a table" + hint));
  EXPECT_THAT(number, testing::Not(HasSubstr("missing")));
  EXPECT_THAT(refused("[calibratd]\nruns = 1\n"), HasSubstr("did you mean 'calibrated'?"));
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
