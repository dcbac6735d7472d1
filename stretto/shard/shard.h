// From a layout to the program of one rank: a step's graph with its gradients, in one rank's sizes, with the
// collectives it needs as nodes.
//
//   Sharded s = shard(step_graph, {{"data", 2}, {"tensor", 4}}, {{"batch", "data"}, {"heads", "tensor"}, ...});
//   Step tasks = split(s.graph);                 // the same tasks for every rank
//   fmt::print("{}", s.str());                   // every parameter's placement, every collective
//
// How a value is split is a pure function of its dims' names. Beside that a value may be pending: the sum over the
// ranks along some axes is still to be made. Each op's entry in the op table (Spread) says what it needs and what comes
// out; one pass in topological order inserts what is missing. Nothing here knows a kind of parallelism by name.
//
// All ranks of an actor run one and the same graph: what differs lies in where their blocks start (see on_rank), and in
// the dims named "@axis" whose one element is the rank's own coordinate.
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/layout.h"
#include "stretto/ir/step_graph.h"

namespace stretto {

struct ShardOptions {
  Storage storage = {};   // gradients and params: the first axes of state, or none
  bool regather = false;  // backward gathers again what forward gathered, instead of keeping it
  DType reduce = f32;     // bf16: gradients are rounded before they are added up over ranks
  double room = 1.5;      // for grouped rows (Dim::by), times what a rank has of them on average
};

using AxisNames = std::vector<std::string>;

struct Collective {
  std::string kind;  // the op's name
  AxisNames axes;
  int ranks = 1;     // of one group
  i64 elements = 0;  // of a rank's operand
  std::size_t bytes = 0;
  std::string cause;
  std::uint16_t piece = 0;
  bool backward = false, per_step = false;  // else per microbatch
  int parts = 1;  // in which it goes, beside the products of the other parts (compile/inner/chunks.h)
};

struct ShardedParam {
  std::string name;
  Type type;                           // a rank's part, in the parameter's own dims
  AxisNames split;                     // axes its own dims lie on
  AxisNames state, gradients, params;  // axes it is cut over beside those, flat
  Type stored, updated;                // what a rank keeps between steps; what norm and update see: flat, never bf16
  i64 elements = 0;                    // of `type`
};
struct ShardedGradient {
  ParamId param;
  Type accumulated;
  AxisNames pending;  // axes over which the accumulated sum is still to be made, once per step
};

struct Sharded {
  StepGraph graph;  // local sizes; split dims carry their axes
  Mesh mesh;        // without the pipeline's axis
  IdVector<ParamId, ShardedParam> params;
  IdVector<AccumulatorId, ShardedGradient> gradients;  // in the order of parameters
  IdVector<OutputId, AxisNames> outputs;               // axes over which the sum is still to be made
  std::vector<Collective> collectives;                 // of one microbatch
  std::vector<Fault> warnings;
  DType reduce = f32;  // as in the options
  std::string str() const;
};

// What cannot work is refused with all its reasons.
Sharded shard(const StepGraph&, const Mesh&, const Layout&, const ShardOptions& = {});

}  // namespace stretto
