// Boards of processes: in memory that those of one machine share, where no process has to help the others'
// words along; or as MPI's collectives, which go on while a transport polls.
//
//   auto board = node_board(segments, words, wait_until);
#pragma once
#include <functional>
#include <memory>

#include "stretto/comm/board.h"
#include "stretto/comm/mpi/segments.h"

namespace stretto {

using WaitUntil = std::function<void(const std::function<bool()>& done)>;  // may throw, and gives up then

std::unique_ptr<Board> node_board(Segments&, std::size_t words, WaitUntil);
std::unique_ptr<Board> message_board(int communicator, std::size_t words, WaitUntil);  // Fortran handle

}  // namespace stretto
