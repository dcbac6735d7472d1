// In place of comm/mpi/ when the build has found no MPI, or was told to use none.
#include "stretto/base/error.h"
#include "stretto/comm/peers.h"

namespace stretto {

bool has_mpi() { return false; }

std::shared_ptr<Peers> mpi_peers(const PeersOptions&) {
  throw Error("mpi", "this run has several processes, and Stretto was built without MPI")
      .hint(
          "install an MPI (Debian: libopenmpi-dev openmpi-bin) and build again, or start one process: its ranks are "
          "threads");
}

}  // namespace stretto
