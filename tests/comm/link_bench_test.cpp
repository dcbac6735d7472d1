#include "stretto/comm/link_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

const LinkBenchOptions quick{.sizes = {1024, 65536}, .rounds = 3};

TEST(LinkBench, MeasuresEveryAxisAndAllTogether) {
  const LinkBench b = measure_links(Mesh{{"pipe", 2}, {"data", 2}, {"tensor", 2}}, quick);
  EXPECT_EQ(b.ranks, 8);
  EXPECT_EQ(b.ranks_per_node, 8);
  std::set<std::pair<std::string, std::string>> seen;
  for (const LinkRow& r : b.rows) {
    seen.insert({r.what, r.group});
    EXPECT_GT(r.seconds, 0);
    EXPECT_EQ(r.nodes, 1);
    EXPECT_EQ(r.members, r.group == "data tensor" ? 4 : 2);
  }
  for (const char* axis : {"pipe", "data", "tensor"}) EXPECT_TRUE(seen.contains({"message", axis})) << axis;
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"})
    for (const char* group : {"data", "tensor", "data tensor"}) EXPECT_TRUE(seen.contains({kind, group})) << group;
  EXPECT_EQ(seen.size(), 3u + 4 * 3);
  EXPECT_EQ(b.rows.size(), 2 * seen.size()) << "two sizes";
  EXPECT_TRUE(b.fit.has_inside);
  EXPECT_FALSE(b.fit.has_between);
  EXPECT_GT(b.memory_bandwidth, 0);
  EXPECT_THAT(b.str(), HasSubstr("fit / measured"));
}

TEST(LinkBench, NothingTakesLessThanOnAnEmulatedLink) {
  const Link link{.latency = 2e-3, .bandwidth = 1e8};
  const LinkBench b = measure_links(Mesh{{"data", 2}}, {.link = link, .sizes = {1024, 262144}, .rounds = 3});
  for (const LinkRow& r : b.rows) {
    const LinkFit model{.inside = link};
    EXPECT_GE(r.seconds, 0.99 * seconds(model, r.use)) << r.what << " of " << r.bytes;
  }
}

TEST(LinkBench, OneRankIsRefused) {
  EXPECT_THAT(refusal_of([] { measure_links(Mesh{{"pipe", 1}}); }), HasSubstr("there is one rank"));
}

}  // namespace
}  // namespace stretto
