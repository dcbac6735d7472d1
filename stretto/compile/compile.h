// The one driver: model + optimizer + how to train + how to parallelise -> a checked program.
//
//   Parallel parallel{.mesh = {{"pipe", 2}}, .schedule = "zb-h1"};
//   Compiled c = compile(model, adamw({.lr = 1e-3}), {.microbatches = 8}, parallel);
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/compile/placed.h"
#include "stretto/compile/traced.h"
#include "stretto/compile/training.h"
#include "stretto/optim/optimizer.h"
#include "stretto/program/program.h"

namespace stretto {

struct CompiledParam {
  std::string name;
  Dims dims;  // logical, like everything here
  DType dtype = f32;
  ParamOptions options;
  std::vector<AccumulatorId> accumulators;  // the first holds the whole gradient after a step
  std::vector<std::uint8_t> states = {};    // which of the optimizer's it has
  bool has_state(std::size_t which) const { return std::find(states.begin(), states.end(), which) != states.end(); }
  bool trained() const { return !accumulators.empty() && !options.update; }  // by the optimizer, and not a state
  // Of a bf16 parameter the logical value is its master, an optimizer state in f32 after those that have names.
  bool has_master() const { return dtype == bf16 && !accumulators.empty(); }
  DType logical_dtype() const { return wide(dtype); }
};
// An input whose numbers are ids to a node of the graph.
struct InputOfIds {
  InputId input;
  NodeId reader;
};
struct Compiled {
  Graph graph;                             // the step with its gradients, for `show`
  std::shared_ptr<const Sharded> sharded;  // how ranks of an actor share it; none: an actor is one rank
  std::shared_ptr<const Program> program;
  IdVector<ParamId, CompiledParam> params;
  IdVector<InputId, TracedInput> inputs;
  std::vector<InputOfIds> ids;
  IdVector<ScalarId, std::string> scalars;  // names of the per-step numbers
  IdVector<TermId, TracedTerm> terms;
  std::vector<TracedMetric> metrics;
  std::vector<TracedExchange> exchanges;
  std::string batch;  // name of the batch dim
  i64 rows_per_step = 0;
  std::optional<ExpertTraffic> experts;  // as in Traced
  Training training;                     // as it was asked for; program->microbatches is what tasks run on
  Parallel parallel;                     // mesh, layout and storage are complete: what the names say is in them
  Model model;
  Optimizer optimizer;
  i64 parameters() const;  // how many numbers are trained or frozen
  std::optional<ScalarId> scalar(std::string_view name) const;
  DType state_dtype(StateId) const;  // as it lies in memory; the logical value is f32 beside bf16
};

Compiled compile(const Model&, const Optimizer&, const Training& = {}, const Parallel& = {});

// The same in two parts. The first is the same for all that differ in schedule, chunks, stages and recompute alone.
struct GraphOfRank {
  int runs = 0;  // how many times a step's tasks run
  Traced traced;
  StepGraph graph;  // with gradients
  Placed placed;
};
GraphOfRank graph_of_rank(const Model&, const Optimizer&, const Training&, const Parallel&);
Compiled compile(GraphOfRank, const Model&, const Optimizer&, const Training&, const Parallel&);
u64 graph_hash(const Compiled&);  // of the graph of one rank, of a program that trains: MeasuredTimes::graph

// Forward only, for evaluation. `trained` is the program that trains: parameters lie where it has them, and
// microbatches go in the order of its schedule, or one after the other if there are more or fewer of them.
Compiled compile_forward(const Model&, const Training&, const Parallel&, const std::map<std::string, i64>& sizes = {},
                         const Program* trained = nullptr);

}  // namespace stretto
