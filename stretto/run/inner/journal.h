// What stays of a run, step by step: the console's rows, metrics.jsonl, TensorBoard events.
//
//   Journal journal(console, directory, {.every = 10, .steps = 300, .tokens_per_step = 2048});
//   journal.step({.result = trainer.step(batch), .seconds = 0.1});
#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "stretto/formats/event_file.h"
#include "stretto/run/console.h"
#include "stretto/run/inner/metrics.h"
#include "stretto/train/routing.h"
#include "stretto/train/trainer.h"

namespace stretto {

struct StepRecord {
  StepResult result;
  double seconds = 0;
  std::optional<double> validation = {};
  bool last = false;
};

struct JournalOptions {
  i64 every = 10, steps = 0;
  double tokens_per_step = 0;
  double flops_per_step = 0, peak = 0;  // peak: flops per second that are possible
  bool measured = false;                // ... as measured, so that other work may have been in the way
  bool bubble = false;                  // there are several actors: say how idle they are
};

// A step as the report draws it.
struct CurvePoint {
  i64 step = 0;
  double loss = 0, grad_norm = 0, lr = 0, tokens_per_second = 0, bubble = 0;
  std::optional<double> validation = {}, imbalance = {};
};

class Journal {
 public:
  Journal(Console&, const std::filesystem::path& directory, JournalOptions);
  void step(const StepRecord&);
  void finish();  // Error when lines of steps are missing in the files

  double seconds() const { return seconds_; }                        // of training, all steps together
  const std::vector<CurvePoint>& curve() const { return curve_; }    // with the steps before a resumption
  const std::optional<RoutedStep>& loads() const { return loads_; }  // of the last step

 private:
  // One step alone may seem to take less than it did, when the one before ended late.
  double mfu(double steps, double seconds) const {
    return std::min(1.0, steps * options_.flops_per_step / (seconds * options_.peak));
  }
  void raise_peak();
  bool has_row(const StepRecord&);  // on the console
  Field::Table metrics_line(const StepRecord&, bool lists) const;
  void write_events(const StepRecord&, bool lists);
  const std::string& trouble() const { return metrics_.trouble().empty() ? events_.trouble() : metrics_.trouble(); }
  void say_trouble();

  Console& console_;
  JournalOptions options_;
  MetricsFile metrics_;
  EventFile events_;
  std::vector<CurvePoint> curve_;
  std::optional<RoutedStep> loads_;
  double seconds_ = 0;
  double interval_ = 0, interval_idle_ = 0;  // since the last row: seconds, and idle seconds of an actor
  i64 interval_steps_ = 0;
  bool raised_ = false;    // the peak was not
  bool first_ = true;      // nothing has been said yet
  bool troubled_ = false;  // files could not be written, and that has been said
};

u64 peak_memory();  // of this process so far, in bytes

}  // namespace stretto
