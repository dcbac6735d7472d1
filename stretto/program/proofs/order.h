// What is known to have happened before what, whatever the timing.
//
//   refuse(settle_order(program));     // fills in Transfer::posted, or says who waits for whom forever
//
// Only receives and collectives wait. All ranks of an actor run the same instructions and a collective is between ranks
// of one actor, at the same place in each of their lists: it waits for ranks that can get there as this one could. So
// one play in any order, of one rank per actor, decides whether a program can finish. Along the way every actor keeps,
// for each other actor, how many of its instructions are surely done: what it learned from the messages it received.
// That number, when a message is written, is the point from which the receiver's memory for it must be free. All
// actors start a step together, or wait for each other as next_step.h says.
#pragma once
#include <functional>

#include "stretto/program/program.h"

namespace stretto {

std::vector<Fault> settle_order(Program&);

// Which instruction writes a transfer's message, in the order of the code. That is the Send; or, of a value that is
// made in the receiver's memory, the first run, or part of a run, that touches it.
struct Written {
  InstructionId at;
  TransferId transfer;
};
std::vector<Written> written_by(const Program&, ActorId);

// Known: of every actor, the first instruction that may not be done yet.
//
// The play itself: calls `come` for the instructions that somebody wants to hear of, in an order in which they can
// happen, with where each stands and what its actor knows when it begins.
using Known = IdVector<ActorId, InstructionId>;
struct At {  // of an actor's code
  const Turn& turn;
  std::size_t in_turn;
  InstructionId id() const { return InstructionId(turn.first.value + in_turn); }
};
using Come = std::function<void(ActorId, At, const Known&)>;
using Wanted = std::function<bool(ActorId, TurnCodeId, std::size_t in_turn)>;  // asked once for each code
std::vector<Fault> play(const Program&, const Wanted&, const Come&);

}  // namespace stretto
