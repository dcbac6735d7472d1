// The differentiated step as one graph: what goes in, what comes out, and every gradient with the piece it belongs to.
//
//   StepGraph s;
//   s.graph = std::move(builder.graph);
//   s.params = {w}, s.inputs = {x}, s.outputs = {{"loss", loss}}, s.gradients = {{.param = 0, .piece = 1, .value = dw}};
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/ir/graph.h"

namespace stretto {

struct StepGraph {
  Graph graph;
  std::vector<Value> params, inputs, scalars;
  struct Output {
    std::string name;
    Value value;
    bool count = false;  // needed before the first backward: may depend on inputs only
  };
  std::vector<Output> outputs;
  struct Grad {
    std::uint32_t param = 0;
    std::uint16_t piece = 0;
    Value value;
  };
  std::vector<Grad> gradients;
};

// The graph is sound and has everything that is named.
std::vector<Fault> verify(const StepGraph&);

}  // namespace stretto
