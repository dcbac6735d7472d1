// A measured step as files beside what the simulator makes of its mean times: a page with both on one axis and their
// difference, a picture, and a trace for Perfetto.
//
//   write_timeline(directory, program.schedule, measured);     // timeline.html, timeline.svg, timeline.json
#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "stretto/cost/machine.h"
#include "stretto/schedule/timeline.h"

namespace stretto {

// The simulated step, then the measured one.
std::vector<Timeline> side_by_side(const Schedule&, const Timeline& measured, const std::optional<Link>& = {});

void write_timeline(const std::filesystem::path& directory, const Schedule&, const Timeline& measured,
                    const std::optional<Link>& = {});

}  // namespace stretto
