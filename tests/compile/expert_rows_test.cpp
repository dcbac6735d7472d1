// Which way tokens get to experts, on links that are easy to count with.
#include "stretto/compile/expert_rows.h"

#include <gmock/gmock.h>

#include "support/small_models.h"

namespace stretto {
namespace {

using testing::StartsWith;

constexpr double inside = 300e9, between = 50e9;
Cluster nodes_of_four() {
  return {.inside = {.latency = 3e-6, .bandwidth = inside},
          .between = {.latency = 10e-6, .bandwidth = between},
          .ranks_per_node = 4};
}

ExpertRowsSeconds seconds(int ranks, i64 top_k, const Cluster& c, i64 tokens = 8192) {
  std::vector<int> group;
  for (int r = 0; r < ranks; ++r) group.push_back(r);
  return expert_rows_seconds({.tokens = tokens, .width = 1024, .top_k = top_k},
                             {.ranks = ranks, .nodes = spread_of(c, group)}, c);
}

TEST(ExpertRows, TakeWhatTheirBytesTake) {
  const Link link{.latency = 0, .bandwidth = 1e9};
  const ExpertRowsSeconds s = seconds(4, 2, equal_links(link));
  const double row = 1024 * 4, rank = 8192;  // bytes, tokens
  const double gathered = 3 * rank * row / 1e9, choices = 3 * rank * 2 * 4 / 1e9;
  EXPECT_NEAR(s.gather, 2 * (2 * gathered + 2 * choices), 1e-9);
  const double sent = 2 * 0.75 * rank * row / 1e9, weights = 2 * 0.75 * rank * 4 / 1e9;
  EXPECT_NEAR(s.exchange, 2 * (2 * sent + weights) + choices, 1e-9);
  // Next to nothing to send: what counts is how often.
  const ExpertRowsSeconds few = seconds(4, 2, equal_links({.latency = 1e-3, .bandwidth = 1e15}), 1);
  EXPECT_NEAR(few.gather, 2 * 4 * 3e-3, 1e-6);
  EXPECT_NEAR(few.exchange, (2 * 3 + 1) * 3e-3, 1e-6);
}

// With equal links it is the number of ranks against that of choices.
TEST(ExpertRows, CrossAtTopKWhereLinksAreEqual) {
  const Cluster c = equal_links({.latency = 1e-6, .bandwidth = 100e9});
  for (const i64 top_k : {1, 2, 4, 8})
    for (const int ranks : {2, 4, 8, 16})
      EXPECT_EQ(seconds(ranks, top_k, c).exchange_is_faster(), ranks > top_k) << ranks << " ranks, top-" << top_k;
}

// As docs/layouts.md has it from simulated steps.
TEST(ExpertRows, CrossLaterBetweenNodes) {
  const std::map<std::pair<i64, int>, bool> exchanged{
      {{1, 2}, true},  {{1, 4}, true},  {{1, 8}, true},  {{1, 16}, true},  //
      {{2, 2}, false}, {{2, 4}, true},  {{2, 8}, true},  {{2, 16}, true},  //
      {{4, 2}, false}, {{4, 4}, false}, {{4, 8}, false}, {{4, 16}, true},  //
      {{8, 2}, false}, {{8, 4}, false}, {{8, 8}, false}, {{8, 16}, false}};
  for (const auto& [at, is] : exchanged)
    EXPECT_EQ(seconds(at.second, at.first, nodes_of_four()).exchange_is_faster(), is)
        << "top-" << at.first << ", " << at.second << " ranks";
}

ModelConfig four_choices() {
  ModelConfig c = tiny("mixtral");
  c.experts = 16, c.top_k = 4, c.ff = 16, c.width = 64;
  return c;
}
std::string reason(const Parallel& p) {
  return expert_rows_reason(compile(make_model(four_choices(), 16, 16), adamw(), {}, p)).value_or("none");
}

TEST(ExpertRows, AutoFollowsTheClusterAndSaysWhy) {
  Cluster slow = nodes_of_four();  // so slow that the few rows of this model count
  slow.inside = {.latency = 0, .bandwidth = 6e5}, slow.between = {.latency = 0, .bandwidth = 1e5};
  EXPECT_EQ(reason({}), "none");
  EXPECT_EQ(reason({.names = {.expert = 4}}),
            "rows are gathered, which sends as much: 4 ranks share experts, a token has 4");
  EXPECT_EQ(reason({.names = {.expert = 8}}),
            "rows are exchanged, which sends less: 8 ranks share experts, a token has 4");
  EXPECT_THAT(reason({.names = {.expert = 8}, .cluster = slow}), StartsWith("rows are gathered: "));
  EXPECT_THAT(reason({.names = {.expert = 8}, .cluster = equal_links({.latency = 0, .bandwidth = 1e5})}),
              StartsWith("rows are exchanged: "));
  // Neighbours among them are two ranks apart, so that four nodes share what two had.
  EXPECT_THAT(reason({.names = {.tensor = 2, .expert = 8}, .cluster = slow}), StartsWith("rows are exchanged: "));
  EXPECT_EQ(reason({.names = {.expert = 8}, .expert_rows = ExpertRows::exchange, .cluster = slow}),
            "rows are exchanged, as expert_rows says");
}

}  // namespace
}  // namespace stretto
