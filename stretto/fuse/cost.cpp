#include "stretto/fuse/cost.h"

#include <algorithm>

#include "stretto/fuse/fuse.h"
#include "stretto/ir/op.h"

namespace stretto {

double seconds_of(const Calls& calls, CallId id, const Machine& machine) {
  const KernelCall& call = calls.calls[id];
  const Node& n = calls.graph.node(call.node);
  const Cost c = n.op->cost({calls.graph, n});
  const bool of_bf16 =
      std::any_of(n.operands.begin(), n.operands.end(), [&](Value v) { return calls.graph.type(v).dtype == bf16; });
  return seconds(machine, c.flops, c.read + c.written + (call.accumulate ? c.written : 0), of_bf16);
}

double seconds_of(const Calls& calls, const Machine& machine) {
  double sum = 0;
  for (CallId id : calls.calls.ids()) sum += seconds_of(calls, id, machine);
  return sum;
}

double seconds_of(const Graph& body, const Machine& machine) {
  return seconds_of(fuse(body, ResultMemories(body.outputs.size())), machine);
}

}  // namespace stretto
