// One node's operands and results in memory, to run its kernels against each other.
//
//   KernelRun run(graph, y.value.node, seed, KernelRun::strided);      // views with odd strides, gaps and starts
//   run.fill(0, -1, 1);
//   run.run(kernel);   run.result(0)   // in the order of the type's dims
//   check_kernels(graph, node, seed, fill, 1e-5);                      // every kernel against the last one
#pragma once
#include <cstddef>
#include <functional>
#include <random>
#include <vector>

#include "stretto/kernels/kernel.h"
#include "stretto/kernels/team.h"

namespace stretto {

class KernelRun {
 public:
  enum Layout { contiguous, strided };
  KernelRun(const Graph&, NodeId, u64 seed, Layout);

  void fill(int operand, double lo, double hi);  // padding gets huge values: no kernel may use them
  void fill_ids(int operand, i64 below);
  void set(int operand, const std::vector<double>& values);
  void set_offset(int operand_or_minus_result, DimId, i64 offset);  // results count from -1 downwards
  std::vector<double> operand(int i) const;
  std::vector<double> result(int i = 0) const;  // of padding: as it was written
  // `skip`: results nobody uses. Memory outside of the results' views must not change; checked.
  // `team`: threads that share the work, each with scratch of its own.
  void run(const Kernel&, std::vector<int> skip = {}, Team* team = nullptr);
  const Kernel& chosen() const { return choose_kernel(call); }

  Call call;
  Now now;
  int pauses = 0;  // of the last run

 private:
  struct Memory {
    std::vector<std::byte> bytes;
    i64 start = 0;  // in elements
    std::vector<i64> offsets(const View&) const;
  };
  Memory place(View&, Layout);
  double get(const Memory&, const View&, i64 at) const;
  void put(Memory&, const View&, i64 at, double value);
  std::mt19937_64 random_;
  std::vector<Memory> in_, out_;
};

// Runs all kernels that accept the node, over contiguous and over strided views, and compares every result with the
// reference's: |a-b| <= tolerance * (1 + |b|). Returns the names of the kernels that ran.
std::vector<std::string> check_kernels(const Graph&, NodeId, u64 seed, const std::function<void(KernelRun&)>& fill,
                                       double tolerance, std::vector<int> skip = {});

}  // namespace stretto
