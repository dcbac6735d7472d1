// `stretto show`: a schedule as a Gantt chart in the terminal, or as SVG, HTML, CSV or Chrome trace in a file; what a
// run is compiled to, as text.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "run_file.h"
#include "schedule_options.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/compile/expert_rows.h"
#include "stretto/compile/stages.h"
#include "stretto/compile/variants.h"
#include "stretto/exports/torch_schedule.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/kernels/cpu/products.h"
#include "stretto/program/marks.h"
#include "stretto/run/prepare.h"
#include "stretto/runtime/devices.h"
#include "stretto/schedule/csv.h"
#include "stretto/view/chrome.h"
#include "stretto/view/html.h"
#include "stretto/view/svg.h"
#include "stretto/view/text.h"
#include "usage.h"

namespace stretto::app {
namespace {

struct ShowOptions {
  RunFile run;
  std::string what;  // of the run
  ScheduleOptions schedule;
  std::string output;
  int width = 0;  // columns; 0: the terminal's
  bool fold = false;
  std::string reader;  // of the schedule: torch
};

std::string rendered(const Schedule& s, const Timeline& t, const std::string& path, Clock clock = Clock::units) {
  const std::string kind = std::filesystem::path(path).extension().string();
  if (kind == ".svg") return svg(t, {.clock = clock});
  if (kind == ".html") return html(t, {.title = {}, .clock = clock});
  if (kind == ".csv") return write_csv(s);
  if (kind == ".json") return chrome_trace(t, clock);
  throw Error("show", "'{}' does not tell what to write", path)
      .hint("end it in .svg, .html, .csv or .json (a trace for Perfetto)")
      .as(Error::Kind::usage);
}

void write_for_torch(const ShowOptions& o, const Schedule& s) {
  if (std::filesystem::path(o.output).extension() != ".csv")
    throw Error("show", "torch reads schedules as CSV, and {}",
                o.output.empty() ? "no file is named" : o.output + " is none")
        .hint("-o FILE.csv")
        .as(Error::Kind::usage);
  refuse(refused_by_torch(s));
  write_file(o.output, torch_csv(s));
  fmt::print("{}: for {}, _PipelineScheduleRuntime._load_csv(\"{}\", format=\"compute_only\")\n", s.name, torch_version,
             o.output);
}

void show_timeline(const ShowOptions& o, const Schedule& s, const Timeline& t, Clock clock) {
  if (!o.output.empty()) {
    write_file(o.output, rendered(s, t, o.output, clock));
    fmt::print("{}: {}\n{}\n", s.name, summary(t, clock), o.output);
    return;
  }
  TextOptions text = options_for(stdout);
  if (o.width > 0) text.width = o.width;
  text.clock = clock;
  text.fold = o.fold;
  text.lanes = o.schedule.messages;
  fmt::print("{}", gantt_text(t, text));
}

void show_schedule(const ShowOptions& o) {
  const Schedule s = o.schedule.checked(o.schedule.schedules.front());
  if (!o.reader.empty()) return write_for_torch(o, s);
  show_timeline(o, s, o.schedule.predicted(s).timeline, Clock::units);
}

// What there is to see of a run: as text, or, below, as a timeline.
struct Station {
  std::string name;
  std::string (*text)(const Compiled&);
};
const std::vector<Station>& stations() {
  static const std::vector<Station> all{
      {"graph", [](const Compiled& c) { return c.graph.str(); }},
      {"layout",
       [](const Compiled& c) {
         if (!c.sharded) return std::string("every actor is one rank: nothing is split\n");
         const auto reason = expert_rows_reason(c);
         return c.sharded->str() + (reason ? "experts: " + *reason + "\n" : "") + variants_str(c);
       }},
      {"stages", stages_str},
      {"program", [](const Compiled& c) { return c.program->str(); }},
      {"memory", [](const Compiled& c) { return c.program->memory_str(); }},
  };
  return all;
}

void print_or_write(const ShowOptions& o, const std::string& text) {
  if (o.output.empty())
    fmt::print("{}", text);
  else
    write_file(o.output, text);
}

void show_run(ShowOptions o, const CLI::App& command) {
  std::vector<std::string> names;
  for (const Station& s : stations()) names.push_back(s.name);
  names.insert(names.end(), {"schedule", "timeline", "config"});
  // `stretto show config`: of the run that has every default.
  if (o.what.empty() && std::find(names.begin(), names.end(), o.run.file) != names.end() && !is_there(o.run.file))
    o.what = std::exchange(o.run.file, "");
  const auto found = std::find(names.begin(), names.end(), o.what);
  if (found == names.end()) {
    const auto near = nearest(o.what, names);
    throw Error("show", "{}",
                o.what.empty() ? "it is not said what to show of the run" : fmt::format("'{}' cannot be shown", o.what))
        .hint("{}there are {}", near ? fmt::format("did you mean '{}'? ", *near) : "", join(names, ", "))
        .as(Error::Kind::usage);
  }
  refuse_beside_run(command, {of_schedule});
  if (o.what != "schedule") refuse_beside_run(command, {of_times});  // that one is drawn with them
  const RunConfig run = o.run.read(command);
  if (o.what == "config") return print_or_write(o, resolved_toml(run));
  const Compiled compiled = compile_run(run);
  const Program& program = *compiled.program;
  if (o.what == "schedule")
    return show_timeline(o, with_marks(program), o.schedule.predicted(program.schedule).timeline, Clock::units);
  if (o.what == "timeline") {
    PredictOptions options = predict_options(run);
    options.messages = o.schedule.messages;
    return show_timeline(o, program.schedule, predict(program, options).timeline, Clock::seconds);
  }
  std::string text = stations()[found - names.begin()].text(compiled);
  if (o.what == "memory" && computes(run.parallel.device))
    text += fmt::format("products: {} on every rank, for packed operands\nmemory:   {}\n",
                        human_bytes(double(product_buffer) * program.threads), beside_plan(program));
  print_or_write(o, text);
}

}  // namespace

void add_show(CLI::App& app) {
  CLI::App* command = app.add_subcommand("show", "draw a schedule, or print what a run is compiled to");
  const auto o = std::make_shared<ShowOptions>();
  o->run.declare(*command);
  command->add_option("WHAT", o->what,
                      "of the run: graph, layout, stages, program, memory, schedule, timeline or config");
  o->schedule.declare(*command);
  command
      ->add_option("-o,--output", o->output, "write a picture, a page, a table or a trace instead; of a run: the text")
      ->type_name("X.svg|X.html|X.csv|X.json|FILE");
  command->add_option("--width", o->width, "columns of the chart (default: the terminal's)")
      ->type_name("N")
      ->check(whole_number(1, 100000));
  command->add_flag("--fold", o->fold, "as many panels below each other as it takes to number every action");
  declare_reader(*command, o->reader);
  command->add_flag("--messages", o->schedule.messages, "show messages too");
  command->callback([o, command] {
    const bool run = o->run.given(*command);
    std::vector<std::string> read = o->schedule.schedules;
    read.push_back(o->run.file);
    refuse_input("show", o->output, read);
    if (run && !o->reader.empty())
      throw Error("show", "--for is for a schedule, and a run is given")
          .hint("stretto show --schedule zb-v --actors 4 --microbatches 8 -o FILE.csv --for torch")
          .as(Error::Kind::usage);
    if (run && o->schedule.schedules.empty()) return show_run(*o, *command);
    if (run || o->schedule.schedules.size() != 1)
      throw Error("show", "{}",
                  run || !o->schedule.schedules.empty()
                      ? fmt::format("{} schedules{} are given", o->schedule.schedules.size(), run ? " and a run" : "")
                      : "it is not said what to show")
          .hint(
              "stretto show RUN.toml WHAT, or stretto show --schedule 1f1b --actors 4 --microbatches 8; `stretto "
              "simulate` compares several")
          .as(Error::Kind::usage);
    show_schedule(*o);
  });
}

}  // namespace stretto::app
