// Messages between processes: one persistent request per transfer, made before step 0. A receive is posted as soon as
// its memory is free (Transfer::posted) and always before the message is sent, so a send never waits for room; memory
// of a message that is still leaving is waited for where the plan lets go of it (Transfer::released).
//
//   auto transport = mpi_transport(communicator, program, arenas, spins);
//
// Nobody blocks in MPI: whoever waits polls, and sleeps in between. Communicators are passed by their Fortran handles,
// so that mpi.h stays in the .cpp files.
#pragma once
#include <memory>
#include <vector>

#include "stretto/comm/transport.h"

namespace stretto {

// Looks `spins` times before it sleeps. `communicator` has one process per rank, in the order of ranks; the transport
// gets a duplicate of its own.
std::unique_ptr<Transport> mpi_transport(int communicator, const Program&, const ArenaBases& own, int spins);

}  // namespace stretto
