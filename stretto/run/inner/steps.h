// The training steps of a run, one after the other: their batches are made ahead of time, the step after the next one
// is begun where nobody has to look at the parameters in between, one of them may be drawn, and the last may be timed.
//
//   TrainingSteps steps(config, prepared, trainer, done);
//   StepRecord record = steps.take(done + 1, [](i64 last) { return last % 100 == 0; });
#pragma once
#include <exception>
#include <functional>
#include <optional>

#include "stretto/config/run.h"
#include "stretto/data/prefetch.h"
#include "stretto/run/inner/journal.h"
#include "stretto/run/inner/timeline_files.h"
#include "stretto/run/prepare.h"
#include "stretto/runtime/measure.h"
#include "stretto/train/trainer.h"

namespace stretto {

class TrainingSteps {
 public:
  // After `done` steps.
  TrainingSteps(const RunConfig&, const Prepared&, Trainer&, i64 done);

  // Ends with the result of this step. `pauses`: the step after this one must not be under way when it is over.
  StepRecord take(i64 step, const std::function<bool(i64 step)>& pauses);

  const std::optional<MeasuredStep>& drawn() const { return drawn_; }
  MeasuredTimes times() const;  // of the last steps, if they were asked for

 private:
  bool draws(i64 step) const { return config_.log.timeline.is(step, config_.train.steps); }
  bool times(i64 step) const;
  bool alone(i64 step) const { return draws(step) || times(step); }
  StepResult watch(i64 step);
  void submit_some(const std::function<bool(i64 step)>& pauses);
  Batch next_batch() { return batch_of(prepared_.rows, batches_.next()); }

  const RunConfig& config_;
  const Prepared& prepared_;
  Trainer& trainer_;
  Prefetch<Rows> batches_;
  i64 first_;                  // of this run
  i64 next_;                   // the step to be submitted next
  double began_ = 0;           // the step that is waited for, or the end of the one before; of the steady clock
  std::exception_ptr broken_;  // why there is no next step
  std::optional<MeasuredStep> drawn_;
  PieceClock clock_;
};

}  // namespace stretto
