// Which groups of ranks on several nodes can work node by node.
//
//   std::vector<int> nodes{0, 0, 0, 0, 1, 1, 1, 1};      // of the members of a group
//   bool sums_too = is_hierarchy(nodes) && nodes_are_subtrees(8, 4);
#pragma once
#include <span>

namespace stretto {

// Whether there are several nodes with several members each, equally many, one node's after the other's.
bool is_hierarchy(std::span<const int> node_of_member);

// Whether the tree over all members is the tree over nodes of the trees over each node's members, so that sums may be
// made node by node.
bool nodes_are_subtrees(int members, int per_node);

}  // namespace stretto
