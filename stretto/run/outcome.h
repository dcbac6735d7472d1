// What a run has come to: its numbers, and what is said about them.
//
//   fmt::print("{}\n", ending(summary, config.train.steps, seconds));
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "stretto/base/error.h"
#include "stretto/config/run.h"
#include "stretto/run/prepare.h"
#include "stretto/train/trainer.h"

namespace stretto {

struct RunSummary {
  std::filesystem::path directory;  // its config, metrics, TensorBoard events, report; the timeline of a measured step
  i64 steps = 0;                    // done, those before a resumption included
  i64 resumed = 0;                  // done before it
  bool stopped = false;             // by a signal, before the last step
  i64 nonfinite = 0;                // steps whose loss or gradient norm was not, as far as they did not end the run
  double first_loss = 0, last_loss = 0;
  bool computed = true;                        // else the device had no numbers: there are no losses and no parameters
  std::optional<double> validation_loss = {};  // the last one
  u64 parameters = 0;                          // hash
};

// The mean over the validation data, or over train.validate_batches batches of it.
double validation_loss(Trainer&, const Prepared&, const RunConfig&);

// Why a run ends after a step whose loss or gradient norm is not finite.
Error not_finite(const RunConfig&, const StepResult&);

// The last step in the metrics of a run directory; none: there are none yet.
std::optional<i64> last_step_in(const std::filesystem::path& run);

// Its last line but one. `seconds`: of training.
std::string ending(const RunSummary&, i64 steps, double seconds);

}  // namespace stretto
