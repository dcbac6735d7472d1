// Parts of a sum of which every row is zero on all ranks but one: the one that has the place which the row names (the
// expert that a token chose). Such parts may travel through ops that make zeros of zeros, together with others of the
// same rows, until an op reads only the rows of its own places: nothing has to be added up in between.
//
//   if (const Disjoint d = disjoint::made_by(graph, node, spread, axes)) keep_in_parts(node, d);
#pragma once
#include "stretto/ir/op.h"
#include "stretto/shard/inner/axes.h"

namespace stretto {

struct Disjoint {
  AxisSet axes = {};   // along which its parts are disjoint; none: an ordinary value
  Value support = {};  // the places that its rows name, as a value of the logical graph
  explicit operator bool() const { return bool(axes); }
  bool operator==(const Disjoint&) const = default;
};

namespace disjoint {

// Does the op read rows of its own places only, so that the operand may stay in disjoint parts?
bool masked(const Node&, const Spread&, int operand, const Disjoint&, const DimAxes&);
// Is every row of the result made of the same row of the operands?
bool within_rows(const Graph&, const Node&, Value support);
// Does a zero row of all operands that are `zero` make a zero row?
bool makes_zero(const Spread&, const std::vector<bool>& zero);
// What the op itself makes disjoint: along the axes that the dims of places lie on.
Disjoint made_by(const Graph&, const Node&, const Spread&, const DimAxes&);

}  // namespace disjoint
}  // namespace stretto
