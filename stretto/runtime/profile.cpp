#include "stretto/runtime/profile.h"

namespace stretto {

std::vector<KernelTime> kernel_times(const Step& step, const PreparedProgram& prepared, const Device& device) {
  std::vector<KernelTime> times;
  for (const PreparedBody& body : prepared.bodies)
    for (const PreparedCall& c : body.prepared) {
      const Graph& g = body.calls->graph;
      std::string shape;
      for (Value v : g.node(c.node).operands) shape += g.str(g.type(v));
      const KernelId* kernel = std::get_if<KernelId>(&c.does);
      const KernelSpent spent = kernel ? device.spent(*kernel) : KernelSpent{};
      times.push_back({.op = std::string(g.node(c.node).op->name),
                       .kernel = std::string(kernel ? device.kernel_name(*kernel) : "group"),
                       .part = step.tasks[body.first].part,
                       .shape = shape,
                       .seconds = spent.seconds,
                       .runs = spent.runs});
    }
  return times;
}

}  // namespace stretto
