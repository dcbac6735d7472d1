// Which tokens a text begins with.
//
//   PrefixTree tree({{"a", 0}, {"ab", 1}});                         // sorted
//   tree.each("abc", [](std::int32_t id, std::size_t size) { });    // (0, 1), (1, 2)
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/tokenize/inner/bytes.h"

namespace stretto {

class PrefixTree {
 public:
  using Entry = std::pair<std::string_view, std::int32_t>;
  PrefixTree() = default;
  explicit PrefixTree(const std::vector<Entry>& sorted);  // by text, none empty, none twice

  template <class Use>
  void each(std::string_view text, const Use& use) const {
    if (nodes_.empty()) return;
    const Node* node = &nodes_[0];
    for (std::size_t n = 0; n < text.size(); ++n) {
      node = child(*node, byte_of(text[n]));
      if (!node) return;
      if (node->id) use(*node->id, n + 1);
    }
  }

 private:
  struct Node {
    std::uint32_t first = 0;  // its children lie side by side, sorted by their byte
    std::uint16_t count = 0;
    unsigned char byte = 0;
    std::optional<std::int32_t> id = {};
  };
  const Node* child(const Node& of, unsigned char byte) const;

  std::vector<Node> nodes_;
};

}  // namespace stretto
