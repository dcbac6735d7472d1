// A plain interpreter of graphs, for tests only: every value is contiguous, views are copied out.
//
//   Values values{{x.value, buffer}};
//   evaluate(graph, values);                 // adds the values of all other nodes
//   values[y.value].at(0)
#pragma once
#include <map>

#include "support/buffer.h"

namespace stretto::test {

using Values = std::map<Value, Buffer>;

struct Evaluation {
  Now now = {};
  bool reference = false;  // the last kernel of every op instead of the first that accepts
};
// Sources (inputs and parameters) must be in `values`.
void evaluate(const Graph&, Values& values, const Evaluation& = {});

Call contiguous_call(const Graph&, const Node&);
// Runs one kernel on given memory, with the scratch that the op asks for.
void run_kernel(const Kernel&, const Call&, const std::vector<std::byte*>& in, const std::vector<std::byte*>& out,
                Now now = {});

}  // namespace stretto::test
