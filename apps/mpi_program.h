// A wheel's command is linked with no MPI; beside it stand the same with Open MPI and with MPICH.
//
//   become_program_with_mpi(argv);       // first of all; returns where there is nothing to become
#pragma once

namespace stretto::app {

// What a launcher has started as one of several processes becomes the one of them whose MPI this machine has.
void become_program_with_mpi(char** argv);

}  // namespace stretto::app
