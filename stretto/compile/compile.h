// The one driver: model + optimizer + how to train + how to parallelise -> a checked program.
//
//   Compiled c = compile(model, adamw({.lr = 1e-3}), {.microbatches = 8},
//                        {.mesh = {{"pipe", 2}}, .schedule = "zb-h1"});
//
// `Training` changes the numbers, `Parallel` must not: dropping it trains the same program serially.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/cost/machine.h"
#include "stretto/ir/layout.h"
#include "stretto/optim/optimizer.h"
#include "stretto/program/program.h"
#include "stretto/schedule/choice.h"
#include "stretto/shard/layout_of.h"
#include "stretto/shard/shard.h"
#include "stretto/stage/recompute.h"
#include "stretto/trace/trace.h"

namespace stretto {

struct Training {
  int microbatches = 1;
  u64 seed = 0;
  DType dtype = f32;
  double clip = 0;             // of the global gradient norm; 0: none
  bool skip_nonfinite = true;  // a loss or norm that is NaN or infinite: no parameter and no state changes
  // The same bits for every number of ranks along the batch and of microbatches: kernels see `leaf` rows at a time, and
  // their gradients are added in one balanced tree over the batch.
  bool exact = false;
  i64 leaf = 1;
};

struct Parallel {
  Mesh mesh = {};                         // {{"pipe", 4}, {"x", 2}}: four pipeline actors of two ranks each
  ParallelNames names = {};               // the usual layouts; their axes are put behind those of `mesh`
  Layout layout = {};                     // over what the names say: dims -> axes
  Storage storage = {};                   // beside what the names say
  bool regather = false;                  // backward gathers again what forward gathered, instead of keeping it
  Reshard reshard = Reshard::microbatch;  // how long parameters that are cut over ranks stay gathered
  ScheduleChoice schedule = "1f1b";       // a name, a CSV file, a Schedule, or a function that makes one
  int chunks = 0;                         // stages per actor; 0: the schedule's default
  std::vector<int> stages = {};      // pieces per stage; empty: the busiest actor's load is made as small as possible
  std::vector<double> profile = {};  // measured seconds per piece and microbatch to balance by; empty: by op costs
  Link link = {.latency = 2e-6, .bandwidth = 10e9};  // between actors, for balancing; the default is within one process
  std::vector<Recompute> recompute = {};             // one for all stages, or one per stage; empty: none
  bool remote = false;                               // actors are processes: they share no memory
  double poll = 0;  // milliseconds between looks after messages; 0: products are not cut for it
};

struct CompiledParam {
  std::string name;
  Dims dims;  // of the whole, as in all that follows
  DType dtype = f32;
  ParamOptions options;
  std::vector<std::uint32_t> accumulators;  // the first holds the whole gradient after a step
};
struct CompiledInput {
  std::string name;
  Dims dims;  // of one microbatch
  DType dtype = f32;
};
struct CompiledTerm {
  std::string name;
  std::uint32_t sum = 0, count = 0;  // outputs
  double weight = 1;
};
struct CompiledMetric {
  std::string name;
  std::uint32_t output = 0;
  Accumulate how = Accumulate::sum;
  DType dtype = f32;
  i64 elements = 1;  // per microbatch
};

struct Compiled {
  Graph graph;                             // the step with its gradients, for `show`
  std::shared_ptr<const Sharded> sharded;  // how ranks of an actor share it; none: an actor is one rank
  std::shared_ptr<const Program> program;
  std::vector<CompiledParam> params;
  std::vector<CompiledInput> inputs;
  std::vector<std::string> scalars;  // names of the per-step numbers
  std::vector<CompiledTerm> terms;
  std::vector<CompiledMetric> metrics;
  std::string batch;  // name of the batch dim
  i64 rows_per_step = 0;
  Training training;  // exact: `microbatches` counts the leaves of a rank
  Parallel parallel;  // mesh, layout and storage are complete: what the names say is in them
  Model model;
  Optimizer optimizer;
  i64 parameters() const;                   // how many numbers are trained or frozen
  int scalar(std::string_view name) const;  // -1 when there is none
};

Compiled compile(const Model&, const Optimizer&, const Training& = {}, const Parallel& = {});

// Forward only, for evaluation. With the program that trains: its parameters where they lie there, and the order of its
// schedule, or one microbatch after the other where their number is another.
Compiled compile_forward(const Model&, const Training&, const Parallel&, const std::map<std::string, i64>& sizes = {},
                         const Program* trained = nullptr);

}  // namespace stretto
