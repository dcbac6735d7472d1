// `stretto simulate`: what schedules will cost, as a table sorted by makespan, tab-separated rows or a page.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "schedule_options.h"
#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/program/prove.h"
#include "stretto/view/chrome.h"
#include "stretto/view/html.h"
#include "stretto/view/svg.h"

namespace stretto::app {
namespace {

struct SimulateCommand {
  ScheduleOptions schedule;
  std::string output;
  bool plain = false;
};

struct Outcome {
  Schedule schedule;
  Prediction prediction;
  int capacity = -1;  // the smallest that cannot deadlock

  double peak() const { return *std::max_element(prediction.peak.begin(), prediction.peak.end()); }
};

const std::vector<std::string> kHeader = {"schedule", "actors", "microbatches", "makespan", "span",
                                          "period",   "bubble", "peak",         "capacity"};

std::vector<std::string> row_of(const Outcome& o, bool plain) {
  const Prediction& p = o.prediction;
  const auto number = [&](double v) { return plain ? fmt::format("{:.10g}", v) : fmt::format("{:.6g}", v); };
  return {o.schedule.name,
          fmt::format("{}", o.schedule.actors()),
          fmt::format("{}", o.schedule.microbatches),
          number(p.makespan),
          number(p.span),
          number(p.period),
          plain ? number(p.bubble) : fmt::format("{:.1f}%", 100 * p.bubble),
          number(o.peak()),
          o.capacity < 0 ? "-" : fmt::format("{}", o.capacity)};
}

// All of them, so that one run tells everything that is wrong.
std::vector<Outcome> outcomes_of(const ScheduleOptions& o) {
  std::vector<Outcome> outcomes;
  std::vector<Fault> faults;
  for (const std::string& name : o.schedules) try {
      const Schedule s = o.checked(name);
      outcomes.push_back({s, o.predicted(s), prove(s).smallest});
    } catch (const Error& e) {
      if (e.kind() != Error::Kind::input) throw;
      faults.insert(faults.end(), e.faults().begin(), e.faults().end());
    }
  refuse(std::move(faults));
  std::stable_sort(outcomes.begin(), outcomes.end(),
                   [](const Outcome& a, const Outcome& b) { return a.prediction.makespan < b.prediction.makespan; });
  return outcomes;
}

std::string rendered(const std::vector<Timeline>& timelines, const std::string& path) {
  const std::string kind = std::filesystem::path(path).extension().string();
  if (kind == ".svg") return svg(timelines);
  if (kind == ".html") return html(timelines);
  if (kind == ".json") return chrome_trace(timelines);
  throw Error("simulate", "'{}' does not tell what to write", path)
      .hint("end it in .html, .svg or .json (a trace for Perfetto)")
      .as(Error::Kind::usage);
}

void compare_schedules(const SimulateCommand& o) {
  const std::vector<Outcome> outcomes = outcomes_of(o.schedule);
  std::vector<std::vector<std::string>> rows{kHeader};
  for (const Outcome& x : outcomes) rows.push_back(row_of(x, o.plain));
  if (!o.output.empty()) {
    std::vector<Timeline> timelines;
    for (const Outcome& x : outcomes) timelines.push_back(x.prediction.timeline);
    write_file(o.output, rendered(timelines, o.output));
  }
  if (o.plain)
    for (const auto& row : rows) fmt::print("{}\n", join(row, "\t"));
  else
    fmt::print("{}", table(rows));
}

}  // namespace

void add_simulate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("simulate", "predict what schedules cost, and compare them");
  const auto o = std::make_shared<SimulateCommand>();
  o->schedule.declare(*command);
  command->add_flag("--plain", o->plain, "tab-separated rows with all digits, for scripts");
  command->add_flag("--messages", o->schedule.messages, "show messages in the output file");
  command->add_option("-o,--output", o->output, "draw them above each other on one time axis")
      ->type_name("X.html|X.svg|X.json");
  command->callback([o] {
    if (o->schedule.schedules.empty())
      throw Error("simulate", "no schedule is given")
          .hint("stretto simulate --schedule 1f1b --schedule zb-h1 --actors 4 --microbatches 8")
          .as(Error::Kind::usage);
    compare_schedules(*o);
  });
}

}  // namespace stretto::app
