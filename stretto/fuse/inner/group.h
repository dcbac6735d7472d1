// Grouping of pointwise nodes: what is evaluated in one pass over memory.
//
//   Graph grouped = group_pointwise(body, {});     // exp(x + y) * z is one node `fused` of three operands
#pragma once
#include <vector>

#include "stretto/ir/graph.h"

namespace stretto {

// Groups become one `fused` node each. Values in `alone` stay results of a node of their own. Input nodes come first,
// in their order: it numbers the arguments.
Graph group_pointwise(const Graph&, const std::vector<Value>& alone);

}  // namespace stretto
