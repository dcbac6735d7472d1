// The first arrow: a user's model -> its step as plain data, the graph of one microbatch and what a run has to know
// about it.
//
//   Traced t = trace_step(model, {.microbatches = 8});
//   fmt::print("{} parameters\n{}", t.params.size(), t.step.graph.str());
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stretto/ir/step_graph.h"
#include "stretto/optim/optimizer.h"
#include "stretto/step/step.h"
#include "stretto/trace/trace.h"

namespace stretto {

struct TracedParam {
  std::string name;
  Dims dims;
  DType dtype = f32;
  ParamOptions options;
  std::optional<Value> seen = {};  // of a state: what is added up in place of a gradient
  std::optional<MatrixDims> matrix = {};
};
struct TracedInput {
  std::string name;
  Dims dims;  // of one microbatch
  DType dtype = f32;
};
struct TracedTerm {
  std::string name;
  OutputId sum, count;
  ScalarId scale;  // weight / the step's count
  double weight = 1;
};
struct TracedMetric {
  std::string name;
  OutputId output;
  Accumulate how = Accumulate::sum;
  DType dtype = f32;
  i64 elements = 1;      // per microbatch
  std::size_t dims = 0;  // none: it is a number
};
// A layer that may lose rows, and how many of a microbatch it did.
struct TracedExchange {
  std::string layer;
  OutputId lost;
};

struct Traced {
  StepGraph step;                           // forward only
  IdVector<ParamId, TracedParam> params;    // as step.params
  IdVector<InputId, TracedInput> inputs;    // as step.inputs
  IdVector<ScalarId, std::string> scalars;  // as step.scalars: names of the per-step numbers
  IdVector<TermId, TracedTerm> terms;
  std::vector<TracedMetric> metrics;
  std::vector<TracedExchange> exchanges;  // in the order of layers
  std::string batch;                      // name of the batch dim
  i64 rows_per_step = 0;
  std::optional<ExpertTraffic> experts;  // of its last layer that has any, and no slots for them
};

Traced trace_step(const Model&, const TraceOptions&);

// Its lists fit each other, and the graph is sound.
std::vector<Fault> verify(const Traced&);

}  // namespace stretto
