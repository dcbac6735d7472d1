// `stretto plan`: the mesh, schedule, recompute and ZeRO that a run should have on a cluster, by prediction.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "plan_run.h"
#include "stretto/base/text.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/plan/explain.h"
#include "usage.h"

namespace stretto::app {
namespace {

struct PlanCommand {
  RunFile run;
  PlanArguments arguments;
  std::string output;
  bool plain = false;
};

void print_plain(const PlanProblem& p, const Plan& plan, double seconds) {
  fmt::print("{}\n", plain_header());
  for (std::size_t i = 0; i < plan.best.size(); ++i) fmt::print("{}\n", plain_row(p, plan.flops, i + 1, plan.best[i]));
  const Counts& c = plan.counts;
  fmt::print(stderr, "tried={} fit={} scheduled={} compiled={} seconds={:.3f}\n", c.tried, c.fit, c.played, c.compiled,
             seconds);
}

void print_searched(const Counts& c, double seconds) {
  fmt::print(
      "searched {} configurations in {}: {} states too large, {} too large, {} slower than a bound, {} played, "
      "{} compiled\n",
      c.tried, human_seconds(seconds), c.states, c.memory, c.bound, c.played, c.compiled);
}

void print_what_if(const PlanProblem& p, const Plan& plan) {
  constexpr double factor = 2;
  std::vector<std::string> words;
  for (const WhatIf& w : what_if(p, plan.best.front().keys, factor))
    words.push_back(fmt::format("{} x{:g}: {} ({:+.0f}%)", w.what, factor, human_seconds(w.seconds),
                                100 * (w.seconds / plan.best.front().seconds - 1)));
  fmt::print("what if  {}\n", join(words, "   "));
}

void print_plan(const PlanProblem& p, const RunConfig& run, const Planning& planned, const PlanCommand& o) {
  const Plan& plan = planned.plan;
  print_problem(p, run);
  print_searched(plan.counts, planned.seconds);
  fmt::print("{}", table_of(p, plan));
  if (const std::string others = as_good(plan, run.plan.margin); !others.empty()) fmt::print("{}\n", others);
  if (const std::string why = why_not(plan); !why.empty()) fmt::print("why not  {}\n", why);
  fmt::print("memory   {}\n", memory_line(p, plan));
  if (!o.arguments.quick) print_what_if(p, plan);
}

void write_best(const PlanCommand& o, const CLI::App& command, const PlanProblem& p, const Planned& best) {
  const std::vector<std::string> comments{fmt::format("by stretto plan for {} ranks of {}: {} a step, {} a rank",
                                                      p.ranks, p.cluster.name, human_seconds(best.seconds),
                                                      human_bytes(best.bytes))};
  write_file(o.output, planned_toml(o.run.file, command.remaining(), best.keys, comments));
  if (!o.plain)
    fmt::print("written  {}; try: stretto simulate {} --cluster {}\n", o.output, o.output, o.arguments.cluster);
}

void plan_run(const PlanCommand& o, const CLI::App& command) {
  if (o.run.file.empty() && command.remaining().empty())
    throw Error("plan", "no run is given").hint("stretto plan RUN.toml --cluster CLUSTER.toml").as(Error::Kind::usage);
  const RunConfig run = o.run.read_open(command);
  const ClusterFile cluster = cluster_of(o.arguments, run);
  const std::vector<int> ranks = ranks_of(o.arguments, run, cluster);
  for (const int n : ranks) {
    const PlanProblem problem = problem_of(run, cluster, n);
    const Planning planned = make_planning(problem, run, o.arguments);
    if (ranks.size() > 1 && !o.plain) {  // a curve
      const Planned& best = planned.plan.best.front();
      fmt::print("{} ranks: {} a step, MFU {:.1f}%, {:.2f} rank hours per 1000 steps: {}\n", n,
                 human_seconds(best.seconds), 100 * mfu(problem, planned.plan.flops, best.seconds),
                 best.seconds * n / 3.6, best.keys.str());
      continue;
    }
    if (o.plain)
      print_plain(problem, planned.plan, planned.seconds);
    else
      print_plan(problem, run, planned, o);
    if (!o.output.empty() && n == ranks.back()) write_best(o, command, problem, planned.plan.best.front());
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("plan", "choose mesh, schedule, recompute and ZeRO of a run for a cluster, by prediction");
  const auto o = std::make_shared<PlanCommand>();
  o->run.declare(*command);
  PlanArguments& a = o->arguments;
  command->add_option("--cluster", a.cluster, "the machines and links, as `stretto bench comm` writes them")
      ->type_name("X.toml");
  command->add_option("--ranks", a.ranks, "how many ranks there are")->type_name("N")->check(whole_number(1, 1 << 20));
  command->add_option("-o,--output", o->output, "write the best as a run")->type_name("BEST.toml");
  command->add_option("--top", a.top, "how many are listed")->type_name("N")->check(whole_number(1, 10000));
  command->add_flag("--plain", o->plain, "tab-separated rows with all digits, for scripts");
  command->add_flag("--quick", a.quick, "compile nothing: seconds less, percents less exact");
  command->add_option("--candidates", a.candidates, "score exactly these: a table whose columns are keys of runs")
      ->type_name("LIST.tsv");
  command->callback([o, command] {
    if (!o->arguments.candidates.empty()) return score_candidates(o->run, o->arguments, *command);
    plan_run(*o, *command);
  });
}

}  // namespace stretto::app
