// A run whose keys are partly open, planned: what `plan`, `train` and Python share.
//
//   const RunPlanning p = plan_of_run(read_open_run("run.toml"), {.cluster = "cluster.toml", .ranks = 64});
//   RunConfig best = with_keys(p.run, p.best().best().keys);
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/config/plan.h"

namespace stretto {

using PlanProgress = std::function<void(std::string_view what, double done, double of)>;

struct PlanRequest {
  std::string cluster = {};  // a file; "": this machine, or the one that is emulated
  int ranks = 0;             // 0: as the run or the cluster says
  int top = 10;
  bool quick = false;
  PlanProgress progress = {};
  std::function<bool(const RunKeys&)> may = {};  // as in PlanSpace
};

struct Planning {
  PlanProblem problem;
  Plan plan;  // not empty
  double seconds = 0;
  const Planned& best() const { return plan.best.front(); }
  double rank_hours() const;      // of a step
  std::string ranks_str() const;  // "2 ranks × 4 threads"; "64 ranks", where each has one
};

struct RunPlanning {
  RunConfig run;                          // as the software of the cluster has it
  std::vector<Planning> each;             // for each number of ranks, where anything fits; not empty
  std::vector<std::string> without = {};  // why there is none for others
  const Planning& best() const;           // by plan.objective
};

// Nothing legal or nothing that fits is an Error that says what to change.
RunPlanning plan_of_run(const RunConfig& read, const PlanRequest&);

PlanOptions plan_options(const RunConfig&, const PlanRequest&);
ClusterFile cluster_of(const PlanRequest&, const RunConfig&);
Each on_all_cores();

// A run with open keys, planned for the cores of this machine; `said`: what was chosen, and what else was looked at.
RunConfig planned_here(const RunConfig&, std::string& said, PlanProgress = {});

}  // namespace stretto
