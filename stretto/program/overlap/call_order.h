// A new order for the instructions of a region, in which its collectives go on beside other work.
//
//   RegionWork work = work_of(program, region, started_runs(program.actors[actor]), facts);
//   const CallOrder order = order_calls({program, actor, region}, work, times, 0);
//   std::vector<Instruction> all = in_order(order, region, first_new_collective);
#pragma once
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "stretto/program/overlap/region.h"

namespace stretto {

// By positions in the region, so that it serves every region like it.
struct RunPart {
  RegionAt at;
  CallRange calls;
  bool whole = false;  // these are all that it has
};
struct StartCall {
  RegionAt at;
  CallId call;
  bool operator==(const StartCall&) const = default;
};
struct AwaitCall {
  StartCall started;
};
struct AsItWas {  // the instruction as it is
  RegionAt at;
};
using OrderedCall = std::variant<RunPart, StartCall, AwaitCall, AsItWas>;
struct CallOrder {
  std::vector<OrderedCall> calls;
  double seconds = 0;                             // from its beginning to its end
  std::vector<std::pair<RegionAt, double>> sent;  // its messages, and how long after its beginning
  std::vector<RegionAt> left;                     // weight gradients for the region after it
};

// A region, and when its messages arrive.
struct RegionAsItComes {
  const Program& program;
  ActorId actor;
  Region region;
  // Seconds from the region's start to each message's arrival; infinity: after all its work. Messages that are not
  // listed are there.
  std::map<RegionAt, double> late = {};
};

// `leaves`: how many tasks of weight gradients, at most, it leaves to the next region: the last ones, if they fill no
// gap. Times are written into the work.
CallOrder order_calls(const RegionAsItComes&, RegionWork&, WorkTimes&, std::size_t leaves);
CallOrder as_it_stands(const RegionAsItComes&, WorkTimes&);  // nothing changes places

// The region's instructions in that order. Collectives that it starts are numbered from `next` on.
std::vector<Instruction> in_order(const CallOrder&, Region, CollectiveId next);

}  // namespace stretto
