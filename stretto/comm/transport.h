// How messages travel between actors. One implementation is chosen when a run starts: comm/threads/ in one process,
// comm/mpi/ between processes.
//
//   transport.send(transfer, round);                     // of the program, in the round-th step of this run
//   double waited = transport.receive(transfer, round);  // on another actor
#pragma once
#include <cstddef>

#include "stretto/program/program.h"

namespace stretto {

using ArenaBases = PerArena<std::byte*>;
inline std::byte* address(const ArenaBases& arenas, const Slot& s) { return arenas[s.arena] + s.offset; }

class Transport {
 public:
  virtual ~Transport() = default;
  // Rounds count from 1 and are the same on all actors.
  virtual void send(TransferId transfer, std::uint32_t round) = 0;       // never waits
  virtual double receive(TransferId transfer, std::uint32_t round) = 0;  // waits for the message: seconds waited
  virtual void at(InstructionId) {}  // before each instruction of this rank, by its number, and after the last one
  virtual void progress() {}         // now and then between kernels: what is under way may move on
  virtual void stop() noexcept = 0;  // everybody who waits, or will, gets an Error
};

}  // namespace stretto
