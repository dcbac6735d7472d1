// What the files of `plan` share.
#pragma once
#include <string>
#include <vector>

#include "run_file.h"
#include "stretto/exports/target.h"
#include "stretto/run/planned.h"
#include "stretto/view/plan_page.h"

namespace stretto::app {

struct PlanArguments : PlanRequest {
  std::string candidates, measured;
};

std::vector<std::string> lines_about(const PlanProblem&, const RunConfig&);
// What is predicted of the runs of --measured; none without it.
std::vector<PlanMeasured> measured_on(const PlanArguments&);
// HTML; with the program of the plan's first.
std::string page_of(const PlanProblem&, const Plan&, const Program&, const std::vector<PlanMeasured>&,
                    const std::vector<std::string>& lines);
std::string json_of(const Planning&);

// --for: what a search for other software may look at, and the best that it can have, written as its arguments.
RunConfig open_for(const Target&, RunConfig, PlanRequest&);
std::vector<std::string> write_for(const Target&, const Planning&, const RunConfig&, const PlanRequest&,
                                   const std::string& output);
void score_candidates(const RunFile&, const PlanArguments&, const CLI::App& command);

}  // namespace stretto::app
