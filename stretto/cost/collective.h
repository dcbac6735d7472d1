// What a collective takes on a ring of equal links, or on nodes whose ranks are closer to each other.
//
//   double t = collective_seconds(shape, Link{.latency = 5e-6, .bandwidth = 10e9});
//   double u = collective_seconds(shape, cluster, group_of(mesh, rank, shape.axes));
#pragma once
#include <span>

#include "stretto/cost/machine.h"
#include "stretto/ir/collective.h"

namespace stretto {

// Every member sends to its neighbour n - 1 times per phase, 1/n of the whole each time. An all_reduce has two phases.
double collective_bytes(const CollectiveShape&);  // that each member sends
double collective_seconds(const CollectiveShape&, const Link&);

// Rings among the members of a node, and rings of one member from every node, one after the other: between nodes goes
// only what a node's members have not got from each other. Nodes with fewer members do not wait less.
double collective_seconds(const CollectiveShape&, const Cluster&, std::span<const int> ranks);

// How a group lies on nodes: the most members that one has, and how many nodes there are.
struct NodeSpread {
  int most = 1, nodes = 1;
  auto operator<=>(const NodeSpread&) const = default;
};
NodeSpread spread_of(const Cluster&, std::span<const int> ranks);
double collective_seconds(const CollectiveShape&, const Cluster&, NodeSpread);

}  // namespace stretto
