// A run whose keys are partly open, as a problem for plan/, and what was planned as a run again.
//
//   const RunConfig run = read_open_run("run.toml");
//   const PlanProblem problem = problem_of(run, read_cluster("cluster.toml"), 64);
//   const Plan plan = make_plan(problem, space_of(run));
//   RunConfig best = with_keys(run, plan.best.at(0).keys);
#pragma once
#include <string>
#include <vector>

#include "stretto/config/run.h"
#include "stretto/formats/fields.h"
#include "stretto/plan/search.h"

namespace stretto {

PlanProblem problem_of(const RunConfig&, const ClusterFile&, int ranks);
// Searched keys are open as far as [plan] allows, all others are what they are.
PlanSpace space_of(const RunConfig&);
RunKeys keys_of_run(const RunConfig&);  // of a run in which everything is chosen

Field recompute_field(const RunKeys&);  // as the key of a run: a name, or one per stage
// All keys that a plan chooses, as a file has them: {"parallel.pipe", 4}.
std::vector<Member> settings_of(const RunKeys&);

RunConfig with_keys(RunConfig, const RunKeys&);
// The file and settings that were given, with these keys in them: nothing else changes.
std::string planned_toml(const std::string& file, const std::vector<std::string>& overrides, const RunKeys&,
                         const std::vector<std::string>& comments);

// How many ranks the run asks for by itself, if all its axes are given; else 0.
int fixed_ranks(const RunConfig&);

}  // namespace stretto
