// What a collective takes on a ring of equal links.
//
//   double t = collective_seconds(shape, Link{.latency = 5e-6, .bandwidth = 10e9});
#pragma once
#include "stretto/cost/machine.h"
#include "stretto/ir/collective.h"

namespace stretto {

// Every member sends to its neighbour n - 1 times per phase, 1/n of the whole each time. An all_reduce has two phases.
double collective_bytes(const CollectiveShape&);  // that each member sends
double collective_seconds(const CollectiveShape&, const Link&);

}  // namespace stretto
