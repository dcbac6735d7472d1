#include "stretto/ir/step_graph.h"

namespace stretto {

std::vector<Fault> verify(const StepGraph& s) {
  std::vector<Fault> faults = verify(s.graph);
  const auto exists = [&](Value v) {
    return v.node.value < s.graph.nodes.size() && v.result < s.graph.node(v).results.size();
  };
  const auto check = [&](std::string_view what, std::size_t index, Value v) {
    if (!exists(v)) faults.push_back(fault("step", "", "{} {} is not in the graph", what, index));
  };
  for (std::size_t i = 0; i < s.params.size(); ++i) check("parameter", i, s.params[i]);
  for (std::size_t i = 0; i < s.inputs.size(); ++i) check("input", i, s.inputs[i]);
  for (std::size_t i = 0; i < s.scalars.size(); ++i) check("scalar", i, s.scalars[i]);
  for (const StepGraph::Output& o : s.outputs)
    if (!exists(o.value)) faults.push_back(fault("step", "", "output '{}' is not in the graph", o.name));
  for (const StepGraph::Grad& g : s.gradients) {
    check("the gradient of parameter", g.param, g.value);
    if (g.param >= s.params.size())
      faults.push_back(fault("step", "", "a gradient is of parameter {}, and there are {}", g.param, s.params.size()));
  }
  return faults;
}

}  // namespace stretto
