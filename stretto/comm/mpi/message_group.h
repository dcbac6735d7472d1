// Collectives between processes that share no memory: operands are packed, exchanged by non-blocking MPI calls, added
// up here in the one order of addition, and unpacked. An all_reduce is an exchange of parts, a sum, and a gathering:
// every member sends 2 (n - 1) / n of its operand, as on a ring.
//
//   auto group = message_group(communicator, member, under_way, spins);      // one process per member, in their order
#pragma once
#include <memory>

#include "stretto/comm/collective.h"

namespace stretto {

// `copy` false: nothing is exchanged but that everybody is there; for emulated devices, which have no memory.
std::unique_ptr<CollectiveGroup> message_group(int communicator, int member, bool copy, int under_way, int spins);

}  // namespace stretto
