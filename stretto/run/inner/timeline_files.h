// A measured step beside what the simulator makes of its mean times: as files (a page with both on one axis and their
// difference, a picture, a trace for Perfetto) and as text.
//
//   Timeline measured;
//   trainer.step(batch, &measured);
//   const MeasuredStep step = measured_step(*trainer.compiled().program, measured);
//   write_timeline(directory, step);                 // timeline.html, timeline.svg, timeline.json
//   fmt::print("{}", timeline_text(step));
//
// The bubble of a measured step is the share of all ranks' time without work, over the whole step: what they do before
// and after the microbatches (counts, norm, update) is work, waiting for messages and collectives is not.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "stretto/cost/machine.h"
#include "stretto/program/program.h"
#include "stretto/schedule/timeline.h"
#include "stretto/view/text.h"

namespace stretto {

struct MeasuredStep {
  i64 step = 0;
  std::string schedule;  // its name
  Timeline simulated, measured;
};

// `link`: what messages were delayed by.
MeasuredStep measured_step(const Program&, Timeline measured, i64 step = 0, const std::optional<Link>& link = {});

void write_timeline(const std::filesystem::path& directory, const MeasuredStep&);

// The Gantt chart of the measured step, and how it compares with the simulated one.
std::string timeline_text(const MeasuredStep&, TextOptions = {});

}  // namespace stretto
