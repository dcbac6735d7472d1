#include "stretto/comm/inner/hierarchy.h"

#include <algorithm>

#include "stretto/ir/tree_sum.h"

namespace stretto {
namespace {

bool subtrees(int members, int per_node) {
  if (members <= per_node) return members == per_node;
  const int half = tree_half(members), nodes = members / per_node;
  return half % per_node == 0 && half / per_node == tree_half(nodes) && subtrees(half, per_node) &&
         subtrees(members - half, per_node);
}

}  // namespace

bool is_hierarchy(std::span<const int> nodes) {
  const std::ptrdiff_t n = std::ssize(nodes), each = std::count(nodes.begin(), nodes.end(), nodes[0]);
  if (each == n || each == 1 || n % each != 0) return false;
  for (std::ptrdiff_t first = 0; first < n; first += each) {
    if (std::count(nodes.begin(), nodes.end(), nodes[first]) != each) return false;
    for (std::ptrdiff_t i = first; i < first + each; ++i)
      if (nodes[i] != nodes[first]) return false;
  }
  return true;
}

bool nodes_are_subtrees(int members, int per_node) { return members % per_node == 0 && subtrees(members, per_node); }

}  // namespace stretto
