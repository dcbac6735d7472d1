#include "stretto/fuse/cost.h"

#include <algorithm>

#include "stretto/fuse/fuse.h"
#include "stretto/ir/op.h"

namespace stretto {

KernelWork kernel_work(const Calls& calls, CallId id) {
  const KernelCall& call = calls.calls[id];
  const Node& n = calls.graph.node(call.node);
  const auto is_bf16 = [&](Value v) { return calls.graph.type(v).dtype == bf16; };
  return {.cost = n.op->cost({calls.graph, n}),
          .accumulates = call.accumulate,
          .of_bf16 = std::any_of(n.operands.begin(), n.operands.end(), is_bf16)};
}

double seconds_of(const Calls& calls, CallId id, const Machine& machine) {
  return kernel_seconds(kernel_work(calls, id), machine);
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
