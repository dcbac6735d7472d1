// `stretto show`: a schedule as a Gantt chart in the terminal, or as SVG, HTML, CSV or Chrome trace in a file.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "schedule_options.h"
#include "stretto/base/error.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/schedule/csv.h"
#include "stretto/view/chrome.h"
#include "stretto/view/html.h"
#include "stretto/view/svg.h"
#include "stretto/view/text.h"

namespace stretto::app {
namespace {

struct ShowOptions {
  ScheduleOptions schedule;
  std::string output;
  int width = 0;  // columns; 0: the terminal's
  bool fold = false;
};

std::string rendered(const Schedule& s, const Timeline& t, const std::string& path) {
  const std::string kind = std::filesystem::path(path).extension().string();
  if (kind == ".svg") return svg(t);
  if (kind == ".html") return html(t);
  if (kind == ".csv") return write_csv(s);
  if (kind == ".json") return chrome_trace(t);
  throw Error("show", "'{}' does not tell what to write", path)
      .hint("end it in .svg, .html, .csv or .json (a trace for Perfetto)")
      .as(Error::Kind::usage);
}

void show_schedule(const ShowOptions& o) {
  const Schedule s = o.schedule.checked(o.schedule.schedules.front());
  const Prediction p = o.schedule.predicted(s);
  if (!o.output.empty()) {
    write_file(o.output, rendered(s, p.timeline, o.output));
    fmt::print("{}: {}\n{}\n", s.name, summary(p.timeline), o.output);
    return;
  }
  TextOptions text = options_for(stdout);
  if (o.width > 0) text.width = o.width;
  text.fold = o.fold;
  text.lanes = o.schedule.messages;
  fmt::print("{}", gantt_text(p.timeline, text));
}

}  // namespace

void add_show(CLI::App& app) {
  CLI::App* command = app.add_subcommand("show", "draw a schedule");
  const auto o = std::make_shared<ShowOptions>();
  o->schedule.declare(*command);
  command->add_option("-o,--output", o->output, "write a picture, a page, a table or a trace instead")
      ->type_name("X.svg|X.html|X.csv|X.json");
  command->add_option("--width", o->width, "columns of the chart (default: the terminal's)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command->add_flag("--fold", o->fold, "as many panels below each other as it takes to number every action");
  command->add_flag("--messages", o->schedule.messages, "show messages too");
  command->callback([o] {
    if (o->schedule.schedules.size() != 1)
      throw Error("show", "{} schedules are given", o->schedule.schedules.size())
          .hint("stretto show --schedule 1f1b --actors 4 --microbatches 8; `stretto simulate` compares several")
          .as(Error::Kind::usage);
    show_schedule(*o);
  });
}

}  // namespace stretto::app
