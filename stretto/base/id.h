// Strong ids: no arithmetic, no mixing. `NodeId{3}`, `graph.nodes[id.value]`.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace stretto {

using i64 = std::int64_t;
using u64 = std::uint64_t;

template <class Tag, class Rep = std::uint32_t>
struct Id {
  Rep value = std::numeric_limits<Rep>::max();  // the default is "none"
  bool none() const { return value == std::numeric_limits<Rep>::max(); }
  auto operator<=>(const Id&) const = default;
};

using DimId = Id<struct DimTag, std::uint16_t>;
using NodeId = Id<struct NodeTag>;

}  // namespace stretto

template <class Tag, class Rep>
struct std::hash<stretto::Id<Tag, Rep>> {
  std::size_t operator()(stretto::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};
