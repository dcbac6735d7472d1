#include "stretto/run/inner/timeline_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "stretto/formats/atomic_file.h"
#include "stretto/simulate/predict.h"
#include "stretto/simulate/replay.h"
#include "stretto/view/chrome.h"
#include "stretto/view/html.h"
#include "stretto/view/svg.h"

namespace stretto {

MeasuredStep measured_step(const Program& program, Timeline measured, i64 step, const std::optional<Link>& link) {
  SimulateOptions o{.messages = true};
  o.stages = stage_costs(program);  // the sizes of the messages
  if (link) {
    o.link = [link](int, int) { return *link; };
    o.contention = true;
  }
  MeasuredStep s{.step = step, .schedule = program.schedule.name};
  const IdVector<ParamId, Type>& params = program.step->params;
  if (std::any_of(params.begin(), params.end(), [](const Type& t) { return t.dtype == bf16; }))
    s.schedule += " in bf16";
  s.simulated = replay(program.schedule, measured, o).timeline;
  s.simulated.title = "simulated from mean times";
  s.measured = std::move(measured);
  s.measured.title = "measured";
  return s;
}

void write_timeline(const std::filesystem::path& directory, const MeasuredStep& s) {
  const std::vector<Timeline> both{s.simulated, s.measured};
  const std::string title =
      fmt::format("Step {} of {}, as measured and as simulated from its mean times", s.step, s.schedule);
  write_file(directory / "timeline.html", html(both, {.title = title, .clock = Clock::seconds}));
  Timeline alone = s.measured;
  alone.title = fmt::format("{}, step {} as measured", s.schedule, s.step);
  write_file(directory / "timeline.svg", svg(alone, {.width = 1400, .clock = Clock::seconds}));
  write_file(directory / "timeline.json", chrome_trace(alone, Clock::seconds));
}

std::string timeline_text(const MeasuredStep& s, TextOptions o) {
  o.clock = Clock::seconds;
  Timeline t = s.measured;
  t.title = fmt::format("step {} of {}, measured", s.step, s.schedule);
  return gantt_text(t, o) +
         fmt::format("with every action taking its mean time: {}\n", summary(s.simulated, Clock::seconds));
}

}  // namespace stretto
