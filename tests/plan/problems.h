// Problems that tests plan for.
#pragma once
#include "stretto/models/config.h"
#include "stretto/plan/problem.h"

namespace stretto {

// Nodes of eight fast devices with slow links between them.
inline ClusterFile test_cluster(double memory = 80e9) {
  return {.name = "test",
          .cluster = {.machine = {.flops = 50e12, .memory_bandwidth = 2e12, .flops_bf16 = 300e12},
                      .inside = {5e-6, 300e9},
                      .between = {10e-6, 25e9},
                      .ranks_per_node = 8},
          .memory = memory};
}

inline PlanProblem problem_for(const ModelConfig& model, int ranks, i64 batch) {
  PlanProblem p;
  p.model = complete(model);
  p.batch = batch;
  p.optimizer = adamw({});
  p.training = {.dtype = bf16, .clip = 1};
  p.cluster = test_cluster();
  p.ranks = ranks;
  return p;
}

inline PlanProblem small_llama(int ranks, i64 batch) {
  return problem_for({.family = "llama",
                      .layers = 8,
                      .width = 512,
                      .heads = 8,
                      .kv_heads = 4,
                      .ff = 1536,
                      .context = 256,
                      .vocab = 4096},
                     ranks, batch);
}

inline PlanProblem large_llama(int ranks, i64 batch) {
  return problem_for(
      {.family = "llama", .layers = 16, .width = 2048, .heads = 16, .kv_heads = 8, .context = 2048, .vocab = 32000},
      ranks, batch);
}

}  // namespace stretto
