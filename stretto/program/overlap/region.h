// The instructions of one turn of an actor, an action or an overlap group, as work that depends on other work: what
// overlap.h orders anew.
//
//   for (TurnSpan turns : regions_of(program, actor)) {
//     const std::vector<Instruction> r = written_out(program.actors[actor].code, turns);
//     if (has_collectives(program, r) && can_be_ordered(program, r)) {
//       RegionWork all = work_of(program, r, started_runs(program.actors[actor]), facts);
//       set_times(all, program, actor, r, times);
//       interleave(all.work);
//     }
//   }
#pragma once
#include <map>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "stretto/program/overlap/call_facts.h"
#include "stretto/program/overlap/interleave.h"
#include "stretto/program/overlap/work_times.h"
#include "stretto/program/program.h"

namespace stretto {

using Region = std::span<const Instruction>;
using RegionAt = Id<struct RegionTag>;  // a position in a region

// Turns that are ordered as one. What is outside of the row is in turns of its own; where every stage has several
// actors, the gradients that are added up over them after the last turn belong to it: they are all of its sums.
struct TurnSpan {
  std::size_t first = 0, count = 1;
};
// `pairs`: forwards of two microbatches one after the other are one region, and so are backwards.
std::vector<TurnSpan> regions_of(const Program&, ActorId, bool pairs = false);
std::vector<Instruction> written_out(const Code&, TurnSpan);
// In place of some turns: these instructions, cut into turns as they come.
void rewrite_turns(Program&, ActorId, std::size_t from, std::size_t to, const std::vector<Instruction>& as);

// With which action the turn of an action begins: with itself, the first of its overlap group, or, for a W, with what
// stands before it. A W waits for no message and nobody waits for it, so it fills the gaps of its neighbour.
ActionId turn_of(const Row&, ActionId);
ActionId turn_end(const Row&, ActionId first);  // the action after its last

// May a turn end with it? What only starts or waits belongs to the run that comes next.
bool ends_turn(const Instruction&);

// Of actions that stand side by side without recompute: forwards of two microbatches, or backwards. What both
// hold is alive at the same time anyway, from the forwards to the backwards.
bool go_together(const Action&, const Action&);

bool has_collectives(const Program&, Region);  // of tasks, which wait for them in place
bool can_be_ordered(const Program&, Region);   // is it of the row, or gradients that are added up after it?

// A collective that somebody has to await: started here, or before the region, where the Await instruction stands here.
using Flight = std::variant<WorkId, RegionAt>;

struct Origin {
  RegionAt at;
  std::optional<CallId> call = {};  // of a run; none: the whole instruction
};
struct AwaitOf {
  RegionAt at;                         // of the Await instruction, which is no work
  std::optional<WorkId> started = {};  // none: before the region
};
// By positions in the region.
struct RegionWork {
  IdVector<WorkId, Work> work;
  IdVector<WorkId, Origin> origins;
  IdVector<WorkId, std::vector<Flight>> needs;  // what has to be awaited before it
  std::vector<AwaitOf> awaits;
  std::map<WorkId, TaskId> combines;  // gradients that are sent, and who adds them up
};

// Which run each of an actor's Start instructions starts.
using StartedRuns = IdVector<CollectiveId, Run>;
StartedRuns started_runs(const ActorProgram&);

// `apart`: every stage is taken to be on an actor of its own, so that what the next one reads is waited for. Nothing
// takes any time yet.
RegionWork work_of(const Program&, Region, const StartedRuns&, CallFacts&, bool apart = false);
void set_times(RegionWork&, const Program&, ActorId, Region, WorkTimes&);

}  // namespace stretto
