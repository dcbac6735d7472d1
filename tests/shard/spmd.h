// Runs tasks on all ranks in lockstep, with the plain reference kernels; collectives are loops over the ranks of a
// group.
//
//   Spmd machine(sharded);
//   machine.load(traced, params, inputs);      // logical values, cut for every rank
//   machine.step(traced, microbatches);        // count, scale, F, I, W, combine, norm, clip, update
//   machine.loss, machine.norm, machine.gradient(p), machine.param(p)      // put together again
#pragma once
#include <map>
#include <vector>

#include "shard/traced.h"
#include "stretto/shard/epilogue.h"
#include "stretto/shard/shard.h"
#include "stretto/step/split.h"
#include "support/buffer.h"
#include "support/evaluate.h"

namespace stretto::test {

// The part of a logical value that a rank holds, and back. Sizes of `whole` are those of the logical graph.
Buffer part_of(const Buffer& whole, const std::vector<i64>& sizes, const Graph& local, const Type&, const Mesh&,
               int rank);
void put_back(Buffer& whole, const std::vector<i64>& sizes, const Buffer& part, const Graph& local, const Type&,
              const Mesh&, int rank);

class Spmd {
 public:
  Spmd(const Traced&, const Sharded&, int microbatches);

  std::vector<Buffer> params;  // logical; the same after a step
  std::vector<Buffer> inputs;  // logical, of one whole step: all microbatches
  double rate = 0.1;           // of plain gradient descent
  u64 seed = 5;
  void step();
  double loss = 0, norm = 0;
  std::vector<Buffer> gradients;            // logical
  std::vector<std::vector<double>> losses;  // per rank: must be the same bits on all
  std::map<std::string, int> ran;           // collectives by kind, of one rank, all microbatches
  std::map<std::string, double> outputs;    // other outputs, summed over microbatches

 private:
  using Store = std::map<Binding, Buffer>;
  std::vector<std::vector<Buffer>> execute(const Graph& body, const std::vector<std::vector<Buffer>>& arguments,
                                           const IdVector<KeyId, u64>& keys, Now now);
  const Task* count_task() const;
  void run_task(const Task&, int microbatch, bool first);
  void epilogue();
  const Traced& traced_;
  const Sharded& s_;
  Step step_;
  int microbatches_;
  std::vector<Store> stores_;  // per rank
};

}  // namespace stretto::test
