#include "stretto/train/timeline_files.h"

#include <fmt/format.h>

#include "stretto/formats/atomic_file.h"
#include "stretto/simulate/replay.h"
#include "stretto/view/chrome.h"
#include "stretto/view/html.h"
#include "stretto/view/svg.h"

namespace stretto {

std::vector<Timeline> side_by_side(const Schedule& s, const Timeline& measured, const std::optional<Link>& link) {
  SimulateOptions o;
  if (link) o.link = [latency = link->latency](int, int) { return Link{.latency = latency}; };
  Timeline simulated = replay(s, measured, o).timeline;
  simulated.title = "simulated from mean times";
  std::vector<Timeline> both{std::move(simulated), measured};
  both[1].title = "measured";
  return both;
}

void write_timeline(const std::filesystem::path& directory, const Schedule& s, const Timeline& measured,
                    const std::optional<Link>& link) {
  const std::vector<Timeline> both = side_by_side(s, measured, link);
  write_file(
      directory / "timeline.html",
      html(both, {.title = fmt::format("{}: a step as measured and as simulated", s.name), .clock = Clock::seconds}));
  write_file(directory / "timeline.svg", svg(measured, {.clock = Clock::seconds}));
  write_file(directory / "timeline.json", chrome_trace(measured, Clock::seconds));
}

}  // namespace stretto
