// `stretto simulate`: what schedules will cost, as a table sorted by makespan, tab-separated rows or a page; what a
// step of a run will take on a cluster.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "resource_limits.h"
#include "run_file.h"
#include "schedule_options.h"
#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/compile/expert_rows.h"
#include "stretto/cost/cluster_file.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/schedule/prove.h"
#include "stretto/simulate/held.h"
#include "stretto/simulate/predict.h"
#include "stretto/simulate/step_time.h"
#include "stretto/run/measured_runs.h"
#include "stretto/run/prepare.h"
#include "stretto/view/chrome.h"
#include "stretto/view/html.h"
#include "stretto/view/svg.h"
#include "usage.h"

namespace stretto::app {
namespace {

struct SimulateCommand {
  RunFile run;
  ScheduleOptions schedule;
  std::string cluster, output;
  bool plain = false;
};

struct Outcome {
  Schedule schedule;
  Prediction prediction;
  std::optional<int> capacity;  // the smallest that cannot deadlock

  double peak() const { return *std::max_element(prediction.peak.begin(), prediction.peak.end()); }
};

const std::vector<std::string> plain_header = {"schedule", "actors", "microbatches", "makespan", "span",
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
          o.capacity ? fmt::format("{}", *o.capacity) : "-"};
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

std::string rendered(const std::vector<Timeline>& timelines, const std::string& path, Clock clock = Clock::units) {
  const std::string kind = std::filesystem::path(path).extension().string();
  if (kind == ".svg") return svg(timelines, {.clock = clock});
  if (kind == ".html") return html(timelines, {.title = {}, .clock = clock});
  if (kind == ".json") return chrome_trace(timelines, clock);
  throw Error("simulate", "'{}' does not tell what to write", path)
      .hint("end it in .html, .svg or .json (a trace for Perfetto)")
      .as(Error::Kind::usage);
}

void compare_schedules(const SimulateCommand& o) {
  const std::vector<Outcome> outcomes = outcomes_of(o.schedule);
  std::vector<std::vector<std::string>> rows{plain_header};
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

// What the run itself says, unless there is a file.
ClusterFile cluster_for(const SimulateCommand& o, const RunConfig& run) {
  if (!o.cluster.empty()) return read_cluster(o.cluster, {}, run.train.dtype.products);
  ClusterFile file{.name = "parallel.machine and parallel.link"};
  file.cluster.machine = run.parallel.machine;
  if (run.parallel.link) file.cluster.inside = file.cluster.between = *run.parallel.link;
  return file;
}

// One row: what there was before devices had files, then where the busiest actor's time and the fullest rank's memory
// go.
void print_plain(const StepTime& t, double tokens, const Held& fullest, double capacity) {
  std::vector<std::pair<std::string_view, double>> columns{{"seconds", t.seconds},
                                                           {"tokens_per_second", tokens / t.seconds},
                                                           {"sums", t.sums},
                                                           {"exposed", t.exposed},
                                                           {"bytes", fullest.bytes()}};
  for (const auto& part : t.spent.parts()) columns.push_back(part);
  columns.insert(columns.end(), {{"states", fullest.states}, {"activations", fullest.activations}});
  std::string names, numbers;
  for (const auto& [name, number] : columns)
    names += fmt::format("{}\t", name), numbers += fmt::format("{:.10g}\t", number);
  fmt::print("{}limit\n{}{}\n", names, numbers, fullest.bytes() > capacity ? "memory" : t.spent.limit());
}

std::string spent_line(const StepTime& t) {
  std::string line;
  for (const auto& [name, seconds] : t.spent.parts())
    if (seconds >= 0.005 * t.seconds)
      line += fmt::format("{}{} {:.0f}%", line.empty() ? "" : ", ", name, 100 * seconds / t.seconds);
  return line;
}

void simulate_run(const SimulateCommand& o, const CLI::App& command) {
  refuse_beside_run(command, {of_schedule, of_times});
  keep_freed_memory();
  const RunConfig read = o.run.read(command);
  const ClusterFile file = cluster_for(o, read);
  RunConfig run = as_stack_has_it(read, file.cluster.stack);
  if (!o.cluster.empty()) run.parallel.cluster = o.cluster;
  const bool numbers = o.plain && o.output.empty();  // without steps that follow each other, which depend on places
  const Compiled compiled = compile_run(run, numbers ? Purpose::sizes : Purpose::picture);
  const Program& program = *compiled.program;
  check_ranks(file, program.ranks());
  const StepTime step = step_time(program, file.cluster);
  const std::vector<Held> ranks = held(program, file.cluster);
  const double tokens = run.train.batch * run.model.config.context;
  const Held fullest =
      *std::max_element(ranks.begin(), ranks.end(), [](const Held& x, const Held& y) { return x.bytes() < y.bytes(); });
  const double most = fullest.bytes();
  if (!o.output.empty()) {
    PredictOptions options{.machine = file.cluster.machine, .messages = o.schedule.messages};
    if (program.actors.size() > 1)
      options.link = link(file.cluster, program.rank_of(ActorId(0), 0), program.rank_of(ActorId(1), 0));
    Timeline timeline = predict(program, options).timeline;
    write_file(o.output, rendered({std::move(timeline)}, o.output, Clock::seconds));
  }
  if (o.plain) return print_plain(step, tokens, fullest, file.memory);
  const int nodes = (program.ranks() + file.cluster.ranks_per_node - 1) / file.cluster.ranks_per_node;
  fmt::print("mesh     {}\n", program.ranks() > 1 ? compiled.parallel.mesh.str() : "one rank");
  fmt::print("cluster  {}: {} node{} of {}, {}flop/s each\n", file.name, nodes, nodes == 1 ? "" : "s",
             file.cluster.ranks_per_node, human_count(file.cluster.machine.rate(run.train.dtype == bf16)));
  if (const auto reason = expert_rows_reason(compiled)) fmt::print("experts  {}\n", *reason);
  if (file.device) fmt::print("device   {}, software {}\n", file.device->name, file.cluster.stack.name);
  fmt::print("step     {}, {} tok/s\n", human_seconds(step.seconds), human_count(tokens / step.seconds));
  const std::string mark = extrapolated(file, sizes_of(run.model.config, program.ranks()));
  if (!mark.empty()) fmt::print("{}\n", mark);
  if (file.device) fmt::print("spent    {}\n", spent_line(step));
  if (const double period = step_period(program, file.cluster); period < 0.999 * step.seconds)
    fmt::print("period   {}, {} tok/s, where steps follow each other without a barrier (ranks of one process)\n",
               human_seconds(period), human_count(tokens / period));
  if (step.sums > 0)
    fmt::print("sums     of gradients take {}, of which {} are waited for\n", human_seconds(step.sums),
               human_seconds(step.exposed));
  fmt::print("memory   {} on the fullest rank{}\n", human_bytes(most),
             most > file.memory ? fmt::format(", which has {}: the run does not fit", human_bytes(file.memory)) : "");
}

}  // namespace

void add_simulate(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("simulate", "predict what schedules cost, and compare them; what a run's step will take");
  const auto o = std::make_shared<SimulateCommand>();
  o->run.declare(*command);
  command->add_option("--cluster", o->cluster, "of a run: the machines and links, as `stretto bench comm` writes them")
      ->type_name("X.toml");
  o->schedule.declare(*command);
  command->add_flag("--plain", o->plain, "tab-separated rows with all digits, for scripts");
  command->add_flag("--messages", o->schedule.messages, "show messages in the output file");
  command->add_option("-o,--output", o->output, "draw them above each other on one time axis")
      ->type_name("X.html|X.svg|X.json");
  command->callback([o, command] {
    const bool run = o->run.given(*command) || !o->cluster.empty();
    if (run && o->schedule.schedules.empty()) return simulate_run(*o, *command);
    if (run || o->schedule.schedules.empty())
      throw Error("simulate", "{}", run ? "a run and schedules are given" : "no schedule and no run is given")
          .hint(
              "stretto simulate --schedule 1f1b --schedule zb-h1 --actors 4 --microbatches 8, or stretto simulate "
              "RUN.toml --cluster cluster.toml")
          .as(Error::Kind::usage);
    compare_schedules(*o);
  });
}

}  // namespace stretto::app
