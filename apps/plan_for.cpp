// `stretto plan --for TARGET`: plans for other software, as its own arguments.
#include <fmt/format.h>

#include "plan_run.h"
#include "stretto/base/text.h"
#include "stretto/exports/planned_for.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/plan/explain.h"

namespace stretto::app {

RunConfig open_for(const Target& target, RunConfig run, PlanRequest& request) {
  run = for_target(std::move(run), target);
  request.may = [&target, model = run.model.config](const RunKeys& k) { return has_counterpart(target, model, k); };
  return run;
}

std::vector<std::string> write_for(const Target& target, const Planning& a, const RunConfig& run,
                                   const PlanRequest& request, const std::string& output) {
  const Planned best = best_for(target, a.problem, a.plan, plan_options(run, request));
  const std::string what =
      fmt::format("{} on {} ranks of {}: {} a step, {} a rank predicted", best.keys.str(), a.problem.ranks,
                  a.problem.cluster.name, human_seconds(best.seconds), decimal_bytes(best.bytes));
  std::vector<std::string> lines{fmt::format("for      {}: {}", target.name, what)};
  if (const std::string out = target.left_out(); !out.empty())
    lines.push_back(fmt::format("left out {} has no counterpart for {}", target.version, out));
  if (output.empty()) return lines;
  PlanToWrite written = plan_to_write(a.problem, run, best.keys);
  written.comments = {"by stretto plan: " + what};
  write_file(output, target.text(written));
  lines.push_back(fmt::format("written  {}", output));
  return lines;
}

}  // namespace stretto::app
