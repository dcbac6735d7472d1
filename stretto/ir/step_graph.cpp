#include "stretto/ir/step_graph.h"

#include <algorithm>
#include <functional>

namespace stretto {

std::vector<Fault> verify(const StepGraph& s) {
  std::vector<Fault> faults = verify(s.graph);
  const auto exists = [&](Value v) {
    return v.node.value < s.graph.nodes.size() && v.result < s.graph.node(v).results.size();
  };
  const auto check = [&](std::string_view what, auto id, Value v) {
    if (!exists(v)) faults.push_back(fault("step", "", "{} {} is not in the graph", what, id.value));
  };
  for (ParamId i : s.params.ids()) check("parameter", i, s.params[i]);
  for (InputId i : s.inputs.ids()) check("input", i, s.inputs[i]);
  for (ScalarId i : s.scalars.ids()) check("scalar", i, s.scalars[i]);
  for (const StepGraph::Output& o : s.outputs)
    if (!exists(o.value)) faults.push_back(fault("step", "", "output '{}' is not in the graph", o.name));
  for (const StepGraph::Grad& g : s.gradients) {
    check("the gradient of parameter", g.param, g.value);
    if (!s.params.has(g.param))
      faults.push_back(
          fault("step", "", "a gradient is of parameter {}, and there are {}", g.param.value, s.params.size()));
  }
  const auto key = [](const StepGraph::Grad& g) { return std::pair(g.param, g.piece); };
  if (!std::ranges::is_sorted(s.gradients, std::less<>(), key))
    faults.push_back(fault("step", "", "gradients are not in the order of parameters and pieces"));
  return faults;
}

}  // namespace stretto
