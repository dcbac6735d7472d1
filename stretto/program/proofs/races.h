// Proves that no two accesses to the same memory can meet, whatever the timing: of every two that overlap and of which
// one writes, one is over before the other begins, by the order of a lane, by a wait (lanes.h) or by a message.
//
//   refuse(races(program));
//
// Almost everything that touches an actor's memory is in its compute lane, and in order there. So it is enough to know,
// of everything else, from which to which of the compute lane's instructions it may be under way: other lanes between
// the events they wait for and the waits for them; writes of other actors between what they know of this one when they
// write (order.h) and the Receive. Linear in the number of accesses, for as many as are under way at a time.
#pragma once
#include "stretto/program/lanes.h"

namespace stretto {

std::vector<Fault> races(const Program&);
std::vector<Fault> races(const Program&, const IdVector<ActorId, Lanes>&);  // with other waits than lanes_of says

}  // namespace stretto
