#include "stretto/fuse/cost.h"

#include "stretto/ir/op.h"

namespace stretto {

double seconds_of(const Calls& calls, const Machine& machine) {
  double sum = 0;
  for (const KernelCall& call : calls.calls) {
    const Node& n = calls.graph.node(call.node);
    const Cost c = n.op->cost({calls.graph, n});
    sum += seconds(machine, c.flops, c.read + c.written + (call.accumulate ? c.written : 0));
  }
  return sum;
}

double seconds_of(const Graph& body, const Machine& machine) {
  return seconds_of(fuse(body, ResultMemories(body.outputs.size())), machine);
}

}  // namespace stretto
