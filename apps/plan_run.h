// What `plan` and `train` share: a run with open keys, planned for a cluster.
//
//   const Planning p = make_planning(problem_of(run, cluster, 64), run, {});
//   RunConfig best = with_keys(run, p.plan.best.front().keys);
#pragma once
#include <string>
#include <vector>

#include "run_file.h"
#include "stretto/config/plan.h"
#include "stretto/view/plan_page.h"

namespace stretto::app {

struct PlanArguments {
  std::string cluster, candidates, measured;
  int ranks = 0;  // 0: as the run or the cluster says
  int top = 10;
  bool quick = false;
};

struct Planning {
  Plan plan;  // not empty
  double seconds = 0;
};

ClusterFile cluster_of(const PlanArguments&, const RunConfig&);
std::vector<int> ranks_of(const PlanArguments&, const RunConfig&, const ClusterFile&);

// Nothing legal or nothing that fits is an Error that says what to change.
Planning make_planning(const PlanProblem&, const RunConfig&, const PlanArguments&);

std::vector<std::string> lines_about(const PlanProblem&, const RunConfig&);
// What is predicted of the runs of --measured; none without it.
std::vector<PlanMeasured> measured_on(const PlanArguments&);
// HTML; with the program of the plan's first.
std::string page_of(const PlanProblem&, const Plan&, const Program&, const std::vector<PlanMeasured>&,
                    const std::vector<std::string>& lines);
std::string json_of(const PlanProblem&, const Planning&);
void score_candidates(const RunFile&, const PlanArguments&, const CLI::App& command);

Each on_all_cores();

// A run with open keys, planned for the cores of this machine; `said` is a line about what was chosen.
RunConfig planned_here(const RunConfig&, std::string& said);

}  // namespace stretto::app
