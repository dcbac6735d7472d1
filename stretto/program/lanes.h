// In which lane of its rank an instruction runs, and what it waits for there. An actor's list is one order; lanes are
// what of it may go on side by side:
//
//   compute      Run ──── Run ─────────── Run ── Await ── Run ── Receive ── Run
//                           └─▶ Start             ▲                ▲
//   gradients                   all_reduce ───────┘                │   the message of another rank's Send
//
// What stands in one lane runs in order. A Start's lane waits for what compute has done so far, compute waits for the
// lane where the Await stands, a Receive for its message. A Send is in the compute lane, unless its memory is kept
// until Transfer::released: then it is in one of its own, and compute waits for it there.
//
//   const Lanes lanes = lanes_of(program, actor);
//   for (InstructionId j : lanes.waits[i]) device.wait(lanes.lane[i], end_of[j]);      // before instruction i
#pragma once
#include <vector>

#include "stretto/ir/lane.h"
#include "stretto/program/program.h"

namespace stretto {

struct Lanes {
  IdVector<InstructionId, DeviceLane> lane;
  // Instructions of other lanes that are over before this one begins. What stands before it in its own lane is, anyway.
  IdVector<InstructionId, std::vector<InstructionId>> waits;
};
Lanes lanes_of(const Program&, ActorId);
DeviceLane lane_of(Part);             // of a collective that is started
DeviceLane lane_of(const Transfer&);  // of its Send
std::string_view name_of(DeviceLane);

}  // namespace stretto
