// How long tasks take on a device that is emulated.
//
//   EmulatedTasks tasks(program, actor, machine, {});
//   tasks.begin_step();
//   tasks.pass(run);                       // as long as the run would take passes
#pragma once
#include <optional>
#include <vector>

#include "stretto/cost/machine.h"
#include "stretto/cost/times.h"
#include "stretto/program/program.h"

namespace stretto {

class EmulatedTasks {
 public:
  // A task takes what its kernels cost on the machine. With times of one full stage per actor, the first task of each
  // phase of an action takes the whole time of the phase.
  EmulatedTasks(const Program&, ActorId, const Machine&, std::optional<Times>);
  void begin_step();
  void pass(const Run&);
  double seconds_of(const Run&);  // what it takes now

 private:
  const Program& program_;
  Machine machine_;
  IdVector<TaskId, double> task_seconds_;
  std::optional<Times> times_;
  IdVector<ActionId, unsigned> passed_;  // with times per phase: which parts of each action have taken theirs
};

}  // namespace stretto
