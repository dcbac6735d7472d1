// A schedule as a tape for the engine: actions and implied recompute become nodes, edges become messages.
//
//   ScheduleTape t = tape_of(valid(schedule), stage_costs(schedule, options), options);
//   set_times(t, other_costs, options);            // the same nodes and messages, which take another time
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "stretto/schedule/index.h"
#include "stretto/schedule/validate.h"
#include "stretto/simulate/engine.h"
#include "stretto/simulate/simulate.h"

namespace stretto {

// What a node of the tape plays: an action of the index, or the recompute implied before it.
struct TapeItem {
  std::uint32_t action = 0;
  bool implied = false;  // R that stands in no row
};

struct ScheduleTape {
  ActionIndex index;
  int segments = 1;
  Tape tape;
  std::vector<TapeItem> items;             // per node
  std::vector<std::uint32_t> node_of;      // per action
  std::vector<std::uint32_t> sent, taken;  // per edge: the action that makes the message, and the one that needs it
  std::vector<std::pair<ActorId, ActorId>> links;  // per link: from, to

  const Action& action(std::uint32_t node) const { return index.actions[items[node].action]; }
  bool sends(std::uint32_t node) const { return tape.first_edge[node] < tape.first_edge[node + 1]; }
  ActorId actor(std::uint32_t node) const { return index.actor[items[node].action]; }
};

// One entry per stage: the options' own, or their times divided by the chunks per actor. Checked.
StageCosts stage_costs(const Schedule&, const SimulateOptions&);

ScheduleTape tape_of(const Validated<Schedule>&, const StageCosts&, const SimulateOptions&);

// The costs imply recompute at the same stages as those that the tape was made with.
void set_times(ScheduleTape&, const StageCosts&, const SimulateOptions&);

// One schedule played again and again with other times, as a search over cuts does it.
//
//   StepClock clock(valid(schedule), options);
//   double seconds = clock.makespan(costs);
class StepClock {
 public:
  StepClock(const Validated<Schedule>&, SimulateOptions);
  StepClock(const StepClock&) = delete;

  double makespan(const StageCosts&);
  std::ptrdiff_t nodes() const { return std::ssize(tape_.items); }  // how much work a play is

 private:
  SimulateOptions options_;
  ScheduleTape tape_;
  Player player_;
  const std::vector<double> from_;
};

}  // namespace stretto
