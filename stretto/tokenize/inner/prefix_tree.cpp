#include "stretto/tokenize/inner/prefix_tree.h"

#include <algorithm>

namespace stretto {

PrefixTree::PrefixTree(const std::vector<Entry>& sorted) {
  struct Open {  // a node whose children are not made yet: the entries that begin with it
    std::size_t node, begin, end, depth;
  };
  nodes_.emplace_back();
  std::vector<Open> queue{{0, 0, sorted.size(), 0}};
  for (std::size_t q = 0; q < queue.size(); ++q) {
    Open o = queue[q];
    if (o.begin < o.end && sorted[o.begin].first.size() == o.depth) nodes_[o.node].id = sorted[o.begin++].second;
    nodes_[o.node].first = nodes_.size();
    for (std::size_t at = o.begin, end = at; at < o.end; at = end) {
      const unsigned char byte = byte_of(sorted[at].first[o.depth]);
      while (end < o.end && byte_of(sorted[end].first[o.depth]) == byte) ++end;
      ++nodes_[o.node].count;
      queue.push_back({nodes_.size(), at, end, o.depth + 1});
      nodes_.push_back({.byte = byte});
    }
  }
}

const PrefixTree::Node* PrefixTree::child(const Node& of, unsigned char byte) const {
  const auto begin = nodes_.begin() + of.first, end = begin + of.count;
  const auto found = std::lower_bound(begin, end, byte, [](const Node& n, unsigned char b) { return n.byte < b; });
  return found != end && found->byte == byte ? &*found : nullptr;
}

}  // namespace stretto
