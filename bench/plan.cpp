// What `plan` chooses among the configurations of spmd_vs_mpmd against the best of all of them, each compiled and
// simulated, over links between nodes from slow to fast.
//   build/bench/plan [cluster.toml] [--section.key=value ...]
#include <fmt/format.h>

#include <algorithm>

#include "stretto/base/clock.h"
#include "stretto/base/text.h"
#include "stretto/plan/search.h"
#include "stretto/simulate/held.h"
#include "stretto/simulate/step_time.h"

using namespace stretto;

namespace {

constexpr int ranks = 16, most_rows = 8;
constexpr double slower_to_faster[] = {0.25, 0.5, 1, 2, 6};

PlanProblem problem_on(const ClusterFile& cluster) {
  PlanProblem p;
  p.model = complete({.family = "gpt2", .layers = 16, .width = 12288, .heads = 96, .context = 2048, .vocab = 51200});
  p.model.tied = false;
  p.batch = 32;
  p.optimizer = adamw();
  p.cluster = cluster;
  p.ranks = ranks;
  return p;
}

PlanSpace space() {
  using R = Recompute;
  return {.tensor = {1, 2, 4, 8, 16},
          .context = {1},
          .chunks = {1, 2},
          .schedules = {"1f1b", "interleaved-1f1b", "zb-h1"},
          .recompute = {R::none, R::selective, R::full}};
}

struct Simulated {
  RunKeys keys;
  std::vector<double> seconds;  // per cluster
};

std::vector<Simulated> all_that_fit(const std::vector<PlanProblem>& problems) {
  std::vector<Simulated> all;
  const PlanProblem& p = problems.front();
  int tried = 0;
  for (const RunKeys& k : enumerate(p, space()).keys) {
    if (k.rows(p.batch) > most_rows) continue;
    ++tried;
    try {
      const Compiled c = compile_keys(p, k);
      double bytes = 0;
      for (const Held& h : held(*c.program, p.cluster.cluster)) bytes = std::max(bytes, h.bytes());
      if (bytes > p.cluster.memory) continue;
      Simulated s{.keys = k};
      for (const PlanProblem& x : problems) s.seconds.push_back(step_time(*c.program, x.cluster.cluster).seconds);
      all.push_back(std::move(s));
    } catch (const Error&) {  // what no program is made of
    }
  }
  fmt::print("{} configurations compiled, {} fit\n", tried, all.size());
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const bool given = argc > 1 && argv[1][0] != '-';
  const ClusterFile file = read_cluster(given ? argv[1] : STRETTO_SOURCE "/bench/cluster.toml",
                                        std::vector<std::string>(argv + (given ? 2 : 1), argv + argc));
  std::vector<PlanProblem> problems;
  for (const double factor : slower_to_faster) {
    problems.push_back(problem_on(file));
    problems.back().cluster.cluster.between.bandwidth *= factor;
  }
  const std::vector<Simulated> all = all_that_fit(problems);
  std::vector<std::vector<std::string>> rows{
      {"GB/s between nodes", "best of all", "s", "chosen", "s", "chosen / best", "plan took s"}};
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const auto best = std::min_element(
        all.begin(), all.end(), [&](const Simulated& a, const Simulated& b) { return a.seconds[i] < b.seconds[i]; });
    const double start = now();
    const Plan plan = make_plan(problems[i], space());
    const double took = now() - start;
    if (plan.best.empty() || best == all.end()) continue;
    rows.push_back({fmt::format("{:.1f}", problems[i].cluster.cluster.between.bandwidth / 1e9), best->keys.str(),
                    fmt::format("{:.3f}", best->seconds[i]), plan.best.front().keys.str(),
                    fmt::format("{:.3f}", plan.best.front().seconds),
                    fmt::format("{:.4f}", plan.best.front().seconds / best->seconds[i]), fmt::format("{:.1f}", took)});
  }
  fmt::print("{}", table(rows));
}
