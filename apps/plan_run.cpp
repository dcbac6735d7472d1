#include "plan_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stretto/base/text.h"
#include "stretto/plan/explain.h"

namespace stretto::app {

std::vector<std::string> lines_about(const PlanProblem& p, const RunConfig& run) {
  const Cluster& c = p.cluster.cluster;
  const int nodes = (p.ranks + c.ranks_per_node - 1) / c.ranks_per_node;
  return {fmt::format("model    {}: {} parameters; {} sequence{} a step, {}", p.model_str(),
                      human_count(p.parameters()), p.batch, p.batch == 1 ? "" : "s",
                      name_of(run.train.dtype.kept)),
          fmt::format(
              "cluster  {}: {} node{} of {}, {}flop/s each{}", p.cluster.name, nodes, nodes == 1 ? "" : "s",
              std::min(p.ranks, c.ranks_per_node), human_count(c.machine.rate(half(p))),
              std::isfinite(p.cluster.memory) ? fmt::format(", {} of memory", decimal_bytes(p.cluster.memory)) : "")};
}

}  // namespace stretto::app
