// A finished run on one page that needs no other file: how it went (loss, speed), what it was (configuration,
// versions), what it needed (memory), and the step that was measured, if one was.
//
//   write_file(directory / "report.html", report_html({.title = "quickstart", .curve = journal.curve(), ...}));
#pragma once
#include <string>
#include <vector>

#include "stretto/schedule/timeline.h"
#include "stretto/run/inner/journal.h"

namespace stretto {

struct Report {
  std::string title;
  std::vector<std::string> lines = {};  // what the run said about itself and its end
  std::vector<CurvePoint> curve = {};
  std::optional<RoutedStep> loads = {};  // of experts in the last step
  std::vector<double> planned = {};      // bytes per actor
  u64 peak = 0;                          // bytes of the process
  std::vector<Timeline> timelines = {};  // in seconds
  std::string config = {};               // resolved RUN.toml
};

std::string report_html(const Report&);

}  // namespace stretto
