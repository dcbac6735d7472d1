// The differentiated step as one graph: what goes in, what comes out, and every gradient with the piece it belongs to.
//
//   StepGraph s;
//   s.graph = std::move(builder.graph);
//   s.params = {w}, s.inputs = {x}, s.outputs = {{"loss", loss}};
//   s.gradients = {{.param = ParamId(0), .piece = PieceId(1), .value = dw}};
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/ids.h"

namespace stretto {

struct StepGraph {
  Graph graph;
  IdVector<ParamId, Value> params;
  IdVector<InputId, Value> inputs;
  IdVector<ScalarId, Value> scalars;
  struct Output {
    std::string name;
    Value value;
    bool count = false;  // needed before the first backward: may depend on inputs only
  };
  IdVector<OutputId, Output> outputs;
  struct Grad {
    ParamId param;
    PieceId piece;
    Value value;
  };
  IdVector<AccumulatorId, Grad> gradients;  // of ascending parameters and pieces
  // Of sequences that are cut (compile/inner/unroll.h): what lies between two boundaries is there once per segment, and
  // these pieces follow each other.
  int segments = 1;
};

// The graph is sound and has everything that is named, and gradients are in order.
std::vector<Fault> verify(const StepGraph&);

}  // namespace stretto
