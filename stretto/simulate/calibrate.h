// What measured runs say about a cluster file: by which factor all of it is off, and, with enough runs, by which
// factors the times of attention and of passes over elements are.
//
//   Calibration c = calibrate({{step.spent, 12.3}, ...});
//   fmt::print("factor {:.3f}, error {:.1f}%\n", c.fit.factor, 100 * mean_error(c.after));
#pragma once
#include <span>
#include <vector>

#include "stretto/simulate/step_time.h"

namespace stretto {

struct MeasuredRun {
  Spent predicted;
  double seconds = 0;  // of a step, measured
};

struct CalibrationFit {
  double factor = 1, attention = 1, elements = 1;  // of predicted seconds
  double seconds(const Spent&) const;
};
struct Calibration {
  CalibrationFit fit;
  std::vector<double> before, after, left_out;  // per run: predicted / measured - 1; the last from all other runs
};

constexpr int runs_for_rates = 4;  // with fewer runs only the factor is fitted

// Squares of logarithms are made small; attention and elements stay near 1 unless runs say otherwise.
CalibrationFit fit_runs(std::span<const MeasuredRun>);
Calibration calibrate(std::span<const MeasuredRun>);
double mean_error(std::span<const double>);

}  // namespace stretto
