#include "stretto/runtime/inner/emulated_tasks.h"

#include <algorithm>

#include "stretto/comm/emulated_clock.h"
#include "stretto/fuse/cost.h"

namespace stretto {
namespace {

double of_calls(const Calls& calls, CallRange range, const Machine& machine) {
  double sum = 0;
  for (CallId id : ids(range)) sum += seconds_of(calls, id, machine);
  return sum;
}

}  // namespace

EmulatedTasks::EmulatedTasks(const Program& p, ActorId actor, const Machine& machine, std::optional<Times> times)
    : program_(p), machine_(machine), times_(times), passed_(p.row(actor).size(), 0) {
  for (const auto& calls : p.calls) task_seconds_.push_back(stretto::seconds_of(*calls, machine));
}

void EmulatedTasks::begin_step() { passed_.assign(passed_.size(), 0); }

double EmulatedTasks::seconds_of(const Run& r) {
  if (!times_ && r.calls) return of_calls(*program_.calls[r.task], *r.calls, machine_);
  if (!times_) return task_seconds_[r.task];
  const Part part = program_.task(r).part;
  if (!r.action || !of_an_action(part)) return 0;
  const unsigned bit = 1u << static_cast<unsigned>(part);
  if (passed_[*r.action] & bit) return 0;
  passed_[*r.action] |= bit;
  const double whole = part == Part::F ? times_->F : part == Part::I ? times_->I : times_->W;
  return whole / std::max(1.0, static_cast<double>(program_.schedule.stages) / program_.actors.size());
}

void EmulatedTasks::pass(const Run& r) { pass_until(emulated_now() + seconds_of(r)); }

}  // namespace stretto
