// What a run leaves in its directory at its end, beside what it has written on its way.
//
//   write_timeline(directory, drawn);
//   const FinishedRun run{.config = config, .summary = summary, .lines = lines, .curve = journal.curve(), ...};
//   fmt::print("report   {}\n", write_report(run).string());
//   write_measured(run);
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "stretto/config/run.h"
#include "stretto/run/inner/journal.h"
#include "stretto/run/outcome.h"
#include "stretto/run/inner/timeline_files.h"

namespace stretto {

struct FinishedRun {
  const RunConfig& config;
  const RunSummary& summary;
  const std::vector<std::string>& lines;  // what the run said about itself and its end
  const std::vector<CurvePoint>& curve;
  const std::optional<RoutedStep>& loads;  // of experts in the last step
  std::vector<double> planned = {};        // bytes per actor
  const MeasuredStep* drawn = nullptr;     // none: no step was
};

std::filesystem::path write_report(const FinishedRun&);  // its place

// measured.tsv, for `stretto calibrate`: what a step took, without the first, which has more to do.
void write_measured(const FinishedRun&);

}  // namespace stretto
