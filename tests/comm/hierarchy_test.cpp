#include "stretto/comm/inner/hierarchy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "stretto/comm/collective.h"

namespace stretto {
namespace {

// "((0 1)(2 3))" over the members, or over nodes whose members are written as trees themselves.
std::string tree_text(int first, int n, const std::vector<std::string>& leaves) {
  return tree_reduce(
      first, n, [&](int k) { return leaves[std::size_t(k)]; },
      [](const std::string& a, const std::string& b) { return "(" + a + " " + b + ")"; });
}

TEST(Hierarchy, NodesAreSubtreesExactlyWhereTheTreesAreTheSame) {
  int same = 0;
  for (int per_node = 2; per_node <= 9; ++per_node)
    for (int nodes = 2; nodes <= 9; ++nodes) {
      std::vector<std::string> members, trees;
      for (int m = 0; m < per_node * nodes; ++m) members.push_back(std::to_string(m));
      for (int k = 0; k < nodes; ++k) trees.push_back(tree_text(k * per_node, per_node, members));
      const bool equal = tree_text(0, per_node * nodes, members) == tree_text(0, nodes, trees);
      EXPECT_EQ(nodes_are_subtrees(per_node * nodes, per_node), equal) << nodes << " nodes of " << per_node;
      same += equal;
    }
  EXPECT_GE(same, 3 * 8) << "nodes of 2, 4 and 8 always are";
}

TEST(Hierarchy, NodesHaveEquallyManyMembersOneBehindTheOther) {
  EXPECT_TRUE(is_hierarchy(std::vector{0, 0, 1, 1}));
  EXPECT_TRUE(is_hierarchy(std::vector{3, 3, 3, 1, 1, 1}));
  EXPECT_FALSE(is_hierarchy(std::vector{0, 0, 0, 0}));
  EXPECT_FALSE(is_hierarchy(std::vector{0, 1, 2, 3}));
  EXPECT_FALSE(is_hierarchy(std::vector{0, 1, 0, 1}));
  EXPECT_FALSE(is_hierarchy(std::vector{0, 0, 1}));
  EXPECT_FALSE(is_hierarchy(std::vector{0, 0, 1, 0, 1, 1}));
}

}  // namespace
}  // namespace stretto
