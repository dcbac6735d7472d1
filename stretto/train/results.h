// What a step gives: its loss, metrics and norm.
//
//   StepNumbers numbers(engine);
//   numbers.take(worker);                              // by every rank when it ends the step
//   StepResult r = numbers.result(compiled);           // when all have
#pragma once
#include <map>
#include <string>
#include <vector>

#include "stretto/compile/compile.h"
#include "stretto/runtime/engine.h"

namespace stretto {

struct StepResult {
  i64 step = 0;  // from 1
  double loss = 0, grad_norm = 0, lr = 0;
  bool updated = true;         // false: the loss or the norm was not finite and the parameters were left as they are
  double seconds = 0;          // of the step itself; since the one before ended, if it began earlier
  double bubble = 0;           // share of the actors' time without work
  std::vector<double> worked;  // per rank: seconds of it that were not spent waiting
  std::map<std::string, double> metrics;             // loss terms and the model's own
  std::map<std::string, std::vector<double>> lists;  // metrics with dims; concatenated ones have rows in batch order
  std::string str() const;
};

// The results of the ranks of this process, copied when each has finished its part of a step.
class StepNumbers {
 public:
  explicit StepNumbers(const Engine&);
  void take(const Worker&);
  // Loss, metrics and norm. When ranks are processes, every one of them calls this, and gets the same.
  StepResult result(const Compiled&) const;
  bool finite_norm(const Compiled&, const Worker&) const;  // as the rank saw it; it has made the norm

 private:
  double read(const Worker&, u64 at, DType) const;
  double norm(const Compiled&) const;  // of the first rank here that has it; else 0

  const Engine& engine_;
  std::vector<std::vector<std::byte>> taken_;  // per rank: its arena of results
};

// How long it took, with what the other processes say about their ranks.
void add_times(StepResult&, const Engine&, const StepTaken&);

}  // namespace stretto
