// How long tasks take on a device that is emulated.
//
//   EmulatedTasks tasks(program, actor, machine, {});
//   tasks.begin_step();
//   late = tasks.pass(run, late);          // sleeps as long as the run would take
#pragma once
#include <optional>
#include <vector>

#include "stretto/cost/machine.h"
#include "stretto/cost/times.h"
#include "stretto/program/program.h"

namespace stretto {

class EmulatedTasks {
 public:
  // By the cost of the tasks' kernels on the machine; or by times of one full stage per actor: then the first task of
  // each phase of an action takes all of the phase's.
  EmulatedTasks(const Program&, ActorId, const Machine&, std::optional<Times>);
  void begin_step();
  // It began so many seconds ago. Returns how much later than it should this woke up.
  double pass(const Run&, double ago = 0);
  double seconds_of(const Run&);  // that it takes now

 private:
  const Program& program_;
  Machine machine_;
  IdVector<TaskId, double> task_seconds_;
  std::optional<Times> times_;
  IdVector<ActionId, unsigned> passed_;  // with times per phase: which parts of each action have taken theirs
};

// Wakes as closely as the system can; seconds of the steady clock.
void sleep_until(double end);

}  // namespace stretto
