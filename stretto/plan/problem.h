// What is planned for, and what a plan decides.
//
//   PlanProblem problem{.model = preset("llama-3-8b"), .batch = 256, .optimizer = adamw(), .cluster = cluster,
//                       .ranks = 64};
//   RunKeys keys{.data = 8, .tensor = 8, .sequence = true, .microbatches = 32};
//   Compiled c = compile_keys(problem, keys, graph_of_keys(problem, keys));
#pragma once
#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/compile/compile.h"
#include "stretto/cost/cluster_file.h"
#include "stretto/models/config.h"

namespace stretto {

// A model that is data, of which nothing is known but what compiling it says.
struct PlannedGraph {
  Model model;  // with the rows of a step
  std::string name;
  int pieces = 1;
  i64 positions = 1;  // of a row
  double parameters = 0;
  bool experts = false;  // has it a dim of that name?
  bool one_microbatch = false;
};

struct PlanProblem {
  ModelConfig model;  // complete and valid; not looked at where there is a graph
  i64 batch = 1;      // sequences per step, all ranks together
  Optimizer optimizer = {};
  Training training = {};  // its microbatches are the plan's to choose
  Parallel parallel = {};  // what the plan does not choose: reshard, regather, reduce, overlap, stages, ...
  ClusterFile cluster = {};
  int ranks = 1;
  std::optional<PlannedGraph> graph = {};  // instead of a family's model

  // Of our models: the embedding, two per layer, and the parts of the head.
  int pieces() const { return graph ? graph->pieces : static_cast<int>(1 + 2 * model.layers + model.head_parts); }
  i64 positions() const { return graph ? graph->positions : model.context; }
  i64 tokens() const { return batch * positions(); }
  std::string model_str() const;
  double parameters() const;
};

// One configuration: the keys of a run that are searched.
struct RunKeys {
  int pipe = 1, data = 1, tensor = 1, context = 1, expert = 1;
  bool sequence = false;
  int zero = 0;
  std::string_view schedule = "1f1b";  // a name of the table of schedules, or an interned one
  int chunks = 1;                      // stages per actor
  int microbatches = 1;
  Recompute recompute = Recompute::none;       // of all stages, or the one with the most recompute
  std::vector<Recompute> recompute_each = {};  // per stage, where they differ; empty: as above
  std::vector<int> stages = {};                // pieces per stage; empty: compile chooses

  int ranks() const { return pipe * data * tensor * context * expert; }
  int stage_count() const { return pipe * chunks; }
  Recompute recompute_of(std::size_t stage) const { return recompute_each.empty() ? recompute : recompute_each[stage]; }
  void set_recompute(std::vector<Recompute>);  // as runs have it: none at all, one of all stages, one of each
  std::vector<Recompute> recompute_list() const;
  std::string recompute_str() const;                                                 // "full", "full*2,none*6"
  i64 rows(i64 batch) const { return batch / (i64(data) * expert * microbatches); }  // of a microbatch and rank
  std::string str() const;  // "pipe 4 data 2 tensor 8 zero 1, zb-v, 1 x 64, recompute none"
  auto operator<=>(const RunKeys&) const = default;
};

// The less is kept, the later.
inline constexpr Recompute by_what_is_kept[] = {Recompute::none, Recompute::selective, Recompute::layer,
                                                Recompute::full};

std::string_view interned(std::string_view);  // the same text, which lives as long as the program

Parallel parallel_of(const PlanProblem&, const RunKeys&);
Reshard reshard_of(const PlanProblem&, const RunKeys&);  // some stacks keep gathered parameters for a whole step
Training training_of(const PlanProblem&, const RunKeys&);
// To be predicted, not run. What is made first is the same for all whose ranks compute the same graph.
RunKeys keys_of_graph(RunKeys);
GraphOfRank graph_of_keys(const PlanProblem&, const RunKeys&);
Compiled compile_keys(const PlanProblem&, const RunKeys&, GraphOfRank);

// Whether gradients and weights are in 16 bits.
inline bool half(const PlanProblem& p) { return p.training.dtype == bf16; }

}  // namespace stretto
