// Collectives between processes that share no memory, cut into slices of which a few are under way at a time. A slice
// of an all_reduce goes in parts to the members that add them up, in the one order of addition, and their sums come
// back: every member sends 2 (n - 1) / n of its operand, as on a ring. Contiguous memory is sent and received in place,
// other memory is packed.
//
//   auto group = message_group(communicator, member, under_way, spins);      // one process per member, in their order
//
// Slices follow each other in the order in which collectives are started, which is the same on all members; messages
// between two members stay in order, so no slice needs a name of its own.
#pragma once
#include <memory>

#include "stretto/comm/collective.h"

namespace stretto {

std::unique_ptr<CollectiveGroup> message_group(int communicator, int member, int under_way, int spins);

}  // namespace stretto
