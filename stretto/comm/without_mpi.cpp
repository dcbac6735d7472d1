// In place of comm/mpi/ when the build has found no MPI, or was told to use none.
#include "stretto/base/error.h"
#include "stretto/comm/peers.h"

namespace stretto {

bool has_mpi() { return false; }

std::shared_ptr<Peers> mpi_peers(const PeersOptions&) {
  throw Error("mpi", "this run has several processes, and Stretto finds no MPI")
      .hint(
          "install one (Debian: libopenmpi-dev openmpi-bin) and build again, unless it came as a wheel, or start one "
          "process: its ranks are threads");
}

}  // namespace stretto
