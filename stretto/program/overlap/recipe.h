// A new order for the instructions of a region, in which its collectives go on beside other work.
//
//   RegionWork work = work_of(program, turn.region, started_runs(program.actors[turn.actor]), facts);
//   const Recipe recipe = recipe_of(turn, work, times, 0);
//   follow(recipe, turn.region, actor_program);                  // also for every other region of an equal likeness
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
using Beat = std::variant<RunPart, StartCall, AwaitCall, AsItWas>;
struct Recipe {
  std::vector<Beat> beats;
  double seconds = 0;                             // from its beginning to its end
  std::vector<std::pair<RegionAt, double>> sent;  // its messages, and how long after its beginning
  std::vector<RegionAt> left;                     // what it leaves to the region after it
};

// A region where it stands.
struct Passage {
  const Program& program;
  ActorId actor;
  Region region;
  // When messages come, after its beginning; infinite: after all else. Others have arrived.
  std::map<RegionAt, double> late = {};
};

// `leaves`: how many tasks of weight gradients, at most, it leaves to the next region: the last ones, if they fill no
// gap. What the work of the region takes, and when it can begin, is filled in.
Recipe recipe_of(const Passage&, RegionWork&, WorkTimes&, std::size_t leaves);
Recipe as_it_stands(const Passage&, WorkTimes&);  // nothing changes places

// What its recipe depends on, beside when messages come: microbatches, collectives and turns are numbered as they
// appear.
std::vector<u64> likeness(const Program&, ActorId, Region, const StartedRuns&);

void follow(const Recipe&, Region, ActorProgram& out);  // at the end of its code

}  // namespace stretto
