// Runs that were measured, as tab-separated rows: what `train` leaves in its directory (measured.tsv), what `calibrate`
// reads.
//
//   run	seconds	bytes
//   config.toml	0.0123	1.2e9
//
//   for (const MeasuredFile& r : read_measured("runs/first/measured.tsv")) fmt::print("{} {}\n", r.run, r.seconds);
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stretto/config/run.h"
#include "stretto/cost/cluster_file.h"
#include "stretto/simulate/calibrate.h"

namespace stretto {

struct MeasuredFile {
  std::string run;     // a RUN.toml; beside the table unless its path is absolute
  double seconds = 0;  // of a step
  std::optional<double> bytes = {};
};
// Columns are found by name; others are left alone. What is missing or no number is refused with file and line.
std::vector<MeasuredFile> read_measured(const std::string& file);
std::string measured_tsv(const std::vector<MeasuredFile>&);
// The step that says the most about all: steps that waited for something else are longer, never shorter.
double typical_seconds(std::vector<double> steps);

// The run as a cluster's software would do it: what that calls full recompute it does layer by layer, and what goes on
// beside its kernels it says itself.
RunConfig as_stack_has_it(RunConfig run, const Stack& stack);
// What a step of the run takes there.
StepTime predicted_on(const RunConfig&, const std::string& cluster_file);

// The cluster file with the fitted numbers, and what they were fitted to, in place of its own; comments go. Files that
// it names lie beside it: `to` is where it will be.
std::string calibrated(const std::string& cluster_file, const std::string& to, const CalibrationFit&,
                       const CalibratedOn&);

}  // namespace stretto
