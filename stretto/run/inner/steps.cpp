#include "stretto/run/inner/steps.h"

#include <utility>

#include "stretto/base/clock.h"

namespace stretto {

TrainingSteps::TrainingSteps(const RunConfig& config, const Prepared& prepared, Trainer& trainer, i64 done)
    : config_(config),
      prepared_(prepared),
      trainer_(trainer),
      batches_([training = TrainingRows(prepared.corpus, prepared.rows)](i64 step) { return training.at(step); },
               PrefetchOptions{.first = done + 1, .last = config.train.steps}),
      first_(done + 1),
      next_(done + 1) {}

// The last few, and not the first, which has more to do.
bool TrainingSteps::times(i64 step) const {
  constexpr i64 most_timed = 8;
  const i64 last = config_.train.steps;
  return !config_.log.profile.empty() && step > last - most_timed && (step > first_ || step == last);
}

MeasuredTimes TrainingSteps::times() const {
  return {.graph = graph_hash(trainer_.compiled()), .pieces = clock_.pieces()};
}

StepRecord TrainingSteps::take(i64 step, const std::function<bool(i64)>& pauses) {
  if (trainer_.steps_under_way() == 0) began_ = now();
  if (broken_) std::rethrow_exception(broken_);
  StepRecord record{.result = alone(step) ? watch(step) : (submit_some(pauses), trainer_.wait())};
  record.seconds = record.result.ended - std::exchange(began_, record.result.ended);
  return record;
}

// What goes wrong before a step could begin is told when those before it are done.
void TrainingSteps::submit_some(const std::function<bool(i64)>& pauses) {
  const Trainer::After after =
      config_.train.nonfinite == Nonfinite::stop ? Trainer::After::finite : Trainer::After::any;
  const auto goes_on = [&](i64 last) {
    return next_ <= config_.train.steps && !alone(last) && !alone(next_) && !pauses(last);
  };
  while (trainer_.room() && (trainer_.steps_under_way() == 0 || goes_on(next_ - 1))) try {
      trainer_.submit(next_batch(), after);
      ++next_;
    } catch (...) {
      if (trainer_.steps_under_way() == 0) throw;
      broken_ = std::current_exception();
      return;
    }
}

StepResult TrainingSteps::watch(i64 step) {
  Timeline timeline;
  StepResult r = trainer_.step(next_batch(), &timeline);
  ++next_;
  if (times(step)) clock_.add(trainer_.engine());
  if (draws(step))
    drawn_ = measured_step(*trainer_.compiled().program, std::move(timeline), step, config_.parallel.link);
  return r;
}

}  // namespace stretto
