// The step as a list of nodes in topological order: a value type. Nodes are appended by Builder only.
//
//   fmt::print("{}", graph.str());     // one node a line: %3 = gelu(%2) {batch=8 ff=2048} f32  # h.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/dtype.h"
#include "stretto/base/error.h"
#include "stretto/ir/attrs.h"
#include "stretto/ir/dim.h"

namespace stretto {

struct Op;

struct Type {
  DType dtype = f32;
  DimSet dims;
  bool operator==(const Type&) const = default;
};

struct Value {  // an op may have several results
  NodeId node;
  std::uint8_t result = 0;
  auto operator<=>(const Value&) const = default;
};

struct Node {
  const Op* op = nullptr;
  Attrs attrs;
  std::vector<Value> operands;
  std::vector<Type> results;
  std::uint32_t scope = 0;  // index into Graph::scopes
  std::uint16_t piece = 0;  // which piece between boundaries it belongs to
  bool backward = false;    // made by differentiation
};

struct Graph {
  std::vector<Dim> dims;
  std::vector<Node> nodes;
  std::vector<Value> outputs;
  std::vector<std::string> scopes = {""};

  const Node& node(NodeId id) const { return nodes[id.value]; }
  const Node& node(Value v) const { return nodes[v.node.value]; }
  const Type& type(Value v) const { return node(v).results[v.result]; }
  const Dim& dim(DimId d) const { return dims[d.value]; }
  i64 size(DimId d) const { return dims[d.value].size; }
  i64 elements(const Type&) const;
  std::size_t bytes(const Type&) const;
  Dims named(const DimSet&) const;
  std::string_view origin(DimId) const;  // the dim that it was made from with like() or whole(), however often
  std::string str(const Type&) const;    // "{batch=8 ff=2048}"
  std::string str(Value) const;          // "h.3/gelu{batch=8 ff=2048}"
  std::string str() const;
  u64 hash() const;  // of content: ops, attributes, types, structure; not of scopes
};

// Structure: operands come before their users, result types are what the ops' type rules give, dims exist.
std::vector<Fault> verify(const Graph&);

// The same graph without nodes that no output needs; outputs are renumbered. `moved`, when given, receives the new
// node of every old one (none when it is gone).
using MovedNodes = std::vector<std::optional<NodeId>>;
Graph prune(const Graph&, MovedNodes* moved = nullptr);
// The same, but nodes of `kept` stay: a task's arguments are numbered by its input nodes.
Graph prune_keeping(const Graph&, const Op& kept, MovedNodes* moved = nullptr);

}  // namespace stretto

template <>
struct std::hash<stretto::Value> {
  std::size_t operator()(stretto::Value v) const noexcept { return std::size_t(v.node.value) * 31 + v.result; }
};
