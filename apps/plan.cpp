// `stretto plan`: the mesh, schedule, recompute and ZeRO that a run should have on a cluster, by prediction.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "plan_run.h"
#include "progress.h"
#include "resource_limits.h"
#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/plan/explain.h"
#include "stretto/run/measured_runs.h"
#include "usage.h"

namespace stretto::app {
namespace {

struct PlanCommand {
  RunFile run;
  PlanArguments arguments;
  std::string output, target;
  bool plain = false, json = false;
};

std::string mark_of(const PlanProblem& p) { return extrapolated(p.cluster, sizes_of(p.model, p.ranks)); }

void print_rows(const PlanProblem& p, const Plan& plan, double seconds) {
  fmt::print("{}\n", plain_header());
  for (std::size_t i = 0; i < plan.best.size(); ++i) fmt::print("{}\n", plain_row(p, plan.flops, i + 1, plan.best[i]));
  const Counts& c = plan.counts;
  fmt::print(stderr, "tried={} fit={} scheduled={} compiled={} seconds={:.3f}\n", c.tried, c.fit, c.played, c.compiled,
             seconds);
}

std::string searched_line(const Counts& c, double seconds) {
  return fmt::format(
      "searched {} configurations in {}: {} states too large, {} too large, {} slower than a bound, {} played, {} "
      "compiled",
      c.tried, human_seconds(seconds), c.states, c.memory, c.bound, c.played, c.compiled);
}

std::string what_if_line(const PlanProblem& p, const Plan& plan, const Program& program) {
  constexpr double factor = 2;
  std::vector<std::string> words;
  for (const WhatIf& w : what_if(p, program, factor))
    words.push_back(fmt::format("{} x{:g}: {} ({})", w.what, factor, human_seconds(w.seconds),
                                change(w.seconds / plan.best.front().seconds)));
  return fmt::format("what if  {}", join(words, "   "));
}

std::vector<std::string> lines_of(const Planning& planned, const RunConfig& run, const Program* program) {
  const PlanProblem& p = planned.problem;
  const Plan& plan = planned.plan;
  std::vector<std::string> lines = lines_about(p, run);
  lines.push_back(searched_line(plan.counts, planned.seconds));
  std::istringstream rows(table_of(p, plan));
  for (std::string row; std::getline(rows, row);) lines.push_back(row);
  if (const std::string mark = mark_of(p); !mark.empty()) lines.push_back(mark);
  if (const std::string others = as_good(plan, run.plan.margin); !others.empty()) lines.push_back(others);
  std::string_view head = "why not  ";
  for (const std::string& why : why_not(plan))
    lines.push_back(fmt::format("{}{}", std::exchange(head, "         "), why));
  lines.push_back("memory   " + memory_line(p, plan));
  if (program) lines.push_back(what_if_line(p, plan, *program));
  return lines;
}

std::string page_beside(const std::string& run) {
  return std::filesystem::path(run).replace_extension(".html").string();
}

// The run, and beside it the page.
void write_best(const PlanCommand& o, const CLI::App& command, const Planning& a, const Program& program,
                const std::vector<PlanMeasured>& measured, const std::vector<std::string>& lines) {
  const PlanProblem& p = a.problem;
  const Planned& best = a.best();
  const std::vector<std::string> comments{fmt::format("by stretto plan for {} ranks of {}: {} a step, {} a rank",
                                                      p.ranks, p.cluster.name, human_seconds(best.seconds),
                                                      decimal_bytes(best.bytes))};
  const std::string page = page_beside(o.output);
  write_file(page, page_of(p, a.plan, program, measured, lines));
  write_file(o.output, planned_toml(o.run.file, command.remaining(), best.keys, comments));
  if (!o.plain && !o.json)
    fmt::print("written  {} and {}; try: stretto {}\n", o.output, page,
               o.arguments.cluster.empty() ? fmt::format("train {}", o.output)
                                           : fmt::format("simulate {} --cluster {}", o.output, o.arguments.cluster));
}

void print_curve(const std::vector<Planning>& all) {
  for (const Planning& a : all)
    fmt::print("{}: {} a step, MFU {:.1f}%, {:.3g} rank hours per 1000 steps: {}{}\n", a.ranks_str(),
               human_seconds(a.best().seconds), 100 * mfu(a.problem, a.plan.flops, a.best().seconds),
               1000 * a.rank_hours(), a.best().keys.str(), mark_of(a.problem).empty() ? "" : "; extrapolated");
}

// The name of a run in place of one that is none: "best" -> "best.toml", a folder -> "folder/best.toml".
std::filesystem::path run_meant(std::filesystem::path out) {
  if (is_folder(out)) return out / "best.toml";
  const bool named = out.has_filename() && out.filename() != ".toml";
  return named ? out.replace_extension(".toml") : out.replace_filename("best.toml");
}

// What would be found out, or left undone, only after the search.
void check_output(const PlanCommand& o) {
  const std::filesystem::path out = o.output;
  if (out.empty()) {
    if (!o.arguments.measured.empty())
      throw Error("plan", "--measured is for the page, and none is written")
          .hint("-o BEST.toml")
          .as(Error::Kind::usage);
    return;
  }
  if (!o.target.empty()) {
    const std::string_view extension = target_named(o.target).extension;
    if (out.extension() != extension)
      throw Error("plan", "-o names the file for {}, which ends in {}, and '{}' does not", o.target, extension,
                  o.output)
          .hint("-o {}", std::filesystem::path(out).replace_extension(extension).string())
          .as(Error::Kind::usage);
    check_directory_of(out);
    return refuse_input("plan", o.output, {o.run.file, o.arguments.cluster});
  }
  if (out.extension() != ".toml")
    throw Error("plan", "-o names the run that is written, and '{}' is not the name of one", o.output)
        .hint("-o {}: the page is written beside it{}", run_meant(out).string(),
              out.extension() == ".json" ? "; --json prints what was found" : "")
        .as(Error::Kind::usage);
  check_directory_of(out);
  check_directory_of(page_beside(o.output));
  if (!o.arguments.measured.empty()) read_measured(o.arguments.measured);
  refuse_input("plan", o.output, {o.run.file, o.arguments.cluster, o.arguments.measured});
}

void plan_run(const PlanCommand& o, const CLI::App& command) {
  if (o.run.file.empty() && command.remaining().empty())
    throw Error("plan", "no run is given")
        .hint("stretto plan RUN.toml --cluster CLUSTER.toml, or without a cluster for this machine")
        .as(Error::Kind::usage);
  const Target* target = o.target.empty() ? nullptr : &target_named(o.target);
  check_output(o);
  PlanRequest request = o.arguments;
  RunConfig read = o.run.read_open(command);
  if (target) read = open_for(*target, std::move(read), request);
  const std::vector<PlanMeasured> measured = measured_on(o.arguments);
  const RunPlanning found = [&] {
    Progress progress("planning");
    request.progress = [&](std::string_view what, double done, double of) { progress.show(done, of, what); };
    return plan_of_run(read, request);
  }();
  for (const std::string& why : found.without) fmt::print(stderr, "{}\n", why);
  const std::vector<Planning>& all = found.each;
  const Planning& best = found.best();
  const bool words = !o.plain && !o.json, drawn = !o.output.empty() && !target;
  const std::shared_ptr<const Program> program = drawn ? program_of(best.problem, best.best()) : best.best().program;
  const std::vector<std::string> lines =
      words || drawn ? lines_of(best, found.run, program.get()) : std::vector<std::string>();
  if (o.json) fmt::print("{}\n", json_of(best));
  if (o.plain)
    for (const Planning& a : all) print_rows(a.problem, a.plan, a.seconds);
  if (words && all.size() > 1) print_curve(all);
  if (words) fmt::print("{}\n", join(lines, "\n"));
  if (drawn) write_best(o, command, best, *program, measured, lines);
  if (target) {
    const std::vector<std::string> done = write_for(*target, best, found.run, request, o.output);
    if (words) fmt::print("{}\n", join(done, "\n"));
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("plan", "choose mesh, schedule, recompute and ZeRO of a run for a cluster, by prediction");
  const auto o = std::make_shared<PlanCommand>();
  o->run.declare(*command);
  PlanArguments& a = o->arguments;
  command
      ->add_option("--cluster", a.cluster,
                   "the machines and links, as `stretto bench comm` writes them; without it this machine")
      ->type_name("X.toml");
  command->add_option("--ranks", a.ranks, "how many ranks there are")->type_name("N")->check(whole_number(1, 1 << 20));
  command
      ->add_option("-o,--output", o->output, "write the best as a run, and beside it a page, BEST.html; or for --for")
      ->type_name("BEST.toml");
  std::vector<std::string> targets;
  for (const Target* t : export_targets()) targets.emplace_back(t->name);
  command
      ->add_option("--for", o->target,
                   "plan what other software can have, and write it as its own arguments: " + join(targets, ", "))
      ->type_name("SOFTWARE");
  command->add_option("--top", a.top, "how many are listed")->type_name("N")->check(whole_number(1, 10000));
  command->add_flag("--plain", o->plain, "tab-separated rows with all digits, for scripts");
  command->add_flag("--json", o->json, "one object with the best, why not the others, memory and counts")
      ->excludes("--plain");
  command->add_option("--measured", a.measured, "runs measured on the cluster: the page shows how they are predicted")
      ->type_name("RUNS.tsv");
  command->add_flag("--quick", a.quick, "compile nothing: seconds less, percents less exact");
  command->add_option("--candidates", a.candidates, "score exactly these: a table whose columns are keys of runs")
      ->type_name("LIST.tsv")
      ->excludes("--ranks", "--output", "--top", "--json", "--measured", "--for");
  command->callback([o, command] {
    keep_freed_memory();
    if (!o->arguments.candidates.empty()) return score_candidates(o->run, o->arguments, *command);
    plan_run(*o, *command);
  });
}

}  // namespace stretto::app
