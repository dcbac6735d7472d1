// Rows that lie where the index is which they name (Dim::by), on a rank: ops that take them there and back become
// collectives, and whoever has such rows and the dim they are grouped by has all that the rows name.
//
//   std::vector<Tensor> results = grouped::local(graph, node, operands, cause);     // of a node with Op::regroups
#pragma once
#include <string>
#include <vector>

#include "stretto/shard/inner/local.h"

namespace stretto::grouped {

// Is one of them rows that are grouped by the other?
bool paired(const Graph&, DimId, DimId);
// Axes of `d` along which its part here is all that matters to the op: its partner in the space lies there, too.
AxisSet shared_axes(const Graph&, const DimAxes&, const DimSet& space, DimId d);
// What a node with Op::regroups becomes.
std::vector<Tensor> local(LocalGraph&, const Graph&, const Node&, const std::vector<Tensor>& operands,
                          const std::string& cause);

}  // namespace stretto::grouped
