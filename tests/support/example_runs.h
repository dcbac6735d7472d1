// The examples of an op as runs of its kernels: every node of it, at the sizes of the example and at random larger
// ones.
//
//   for_each_node(op, bf16, 8, [&](const Examples& e, const Graph& g, NodeId node, unsigned round) {
//     KernelRun run(g, node, round, KernelRun::strided);
//     fill(run, e);
//   });
#pragma once
#include <functional>

#include "stretto/ir/op.h"
#include "support/kernel_run.h"

namespace stretto {

void for_each_node(const Op&, DType, unsigned rounds,
                   const std::function<void(const Examples&, const Graph&, NodeId, unsigned round)>&);
void fill(KernelRun&, const Examples&);  // what an op computed before comes from [0.1, 0.9]

}  // namespace stretto
