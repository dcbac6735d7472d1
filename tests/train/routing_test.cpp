// What became of tokens in layers with experts, from a step's metrics made by hand.
#include "stretto/train/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(Routing, ModelsWithoutExpertsHaveNone) {
  EXPECT_FALSE(routed({}));
  EXPECT_FALSE(routed({.metrics = {{"cross_entropy", 2.5}}, .lists = {{"logits", {1, 2}}}}));
}

TEST(Routing, TheWorstLayerCounts) {
  const auto r = routed({.lists = {{"h.0.load", {4, 4, 4, 4}}, {"h.2.load", {10, 2, 3, 1}}, {"other", {9, 0}}}});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->imbalance, 2.5);
  EXPECT_EQ(r->load.size(), 2u);
  EXPECT_EQ(r->load.at("h.2"), (std::vector<double>{10, 2, 3, 1}));
  EXPECT_FALSE(r->dropped);
}

TEST(Routing, DroppedIsTheShareOfAllChoices) {
  const auto r =
      routed({.metrics = {{"h.0.taken", 8}, {"h.1.taken", 4}}, .lists = {{"h.0.load", {4, 4}}, {"h.1.load", {8, 0}}}});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->dropped, 0.25);
  EXPECT_EQ(r->imbalance, 2);
}

TEST(Routing, TheTableHasACellPerExpert) {
  const std::string table = load_table(*routed({.lists = {{"h.0.load", {6, 2}}}}));
  EXPECT_THAT(table, testing::HasSubstr("<th>h.0</th>"));
  EXPECT_THAT(table, testing::HasSubstr("h.0, expert 0: 6 tokens, 1.50 of the mean"));
  EXPECT_THAT(table, testing::HasSubstr("h.0, expert 1: 2 tokens, 0.50 of the mean"));
}

}  // namespace
}  // namespace stretto
