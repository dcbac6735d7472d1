// What a graph holds, by number.
//
//   for (NodeId id : node_ids(graph))
//     for (Value v : values_of(graph, id)) show(v, graph.type(v));
#pragma once
#include <ranges>

#include "stretto/ir/graph.h"

namespace stretto {

// Of a task's body: its input nodes, in order, are the arguments, its outputs the results. What random nodes draw their
// numbers under is given per run: they name one of the task's keys.
using ArgumentId = Id<struct ArgumentTag>;
using ResultId = Id<struct ResultTag>;
using KeyId = Id<struct KeyTag>;

// A gradient that is added up over microbatches: one per parameter and piece that uses it.
using AccumulatorId = Id<struct AccumulatorTag>;

inline auto node_ids(const Graph& g) { return ids_until<NodeId>(g.nodes.size()); }
inline NodeId last_node(const Graph& g) { return NodeId(g.nodes.size() - 1); }

// All results of a node.
inline auto values_of(const Graph& g, NodeId id) {
  return std::views::iota(std::size_t(0), g.node(id).results.size()) | std::views::transform([id](std::size_t r) {
           return Value{id, static_cast<std::uint8_t>(r)};
         });
}

}  // namespace stretto
