// What a step gives: its loss, metrics and norm.
//
//   StepNumbers numbers(engine, compiled);
//   numbers.take(compiled, worker, worked);            // by every rank when it ends the step
//   StepResult r = numbers.result(compiled, taken);    // when all have
#pragma once
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/compile/compile.h"
#include "stretto/runtime/engine.h"

namespace stretto {

// Rows that found no room with their experts.
struct LostRows {
  std::string layer;  // "h.3"
  double rows = 0;    // not a number: its router's weights are none
};
// What layers lost, in the order in which they follow each other: the first of them that lost any is to be believed,
// for those behind it may read NaN. None: nothing is lost, or what is wrong is something else.
std::optional<LostRows> first_lost(std::span<const LostRows>);

struct StepResult {
  i64 step = 0;  // from 1
  double loss = 0, grad_norm = 0, lr = 0;
  bool updated = true;         // false: the loss or the norm was not finite and the parameters were left as they are
  std::optional<LostRows> lost = {};  // a Trainer's step runs again until none are
  double seconds = 0;          // of the step itself; since the one before ended, if it began earlier
  double ended = 0;            // when, by the steady clock
  double bubble = 0;           // share of the actors' time without work
  std::vector<double> worked;  // per rank: seconds of it that were not spent waiting
  std::map<std::string, double> metrics;             // loss terms and the model's own
  std::map<std::string, std::vector<double>> lists;  // metrics with dims; concatenated ones have rows in batch order
  u64 said = 0;  // the bits that anybody's RunOptions::say had when he ended the step
  bool finite() const { return std::isfinite(loss) && std::isfinite(grad_norm); }
  std::string str() const;
};

// The results of the ranks of this process, copied when each has finished its part of a step. When ranks are processes,
// each tells the others its own then, and goes on.
class StepNumbers {
 public:
  StepNumbers(const Engine&, const Compiled&, std::function<u64()> say = {});
  void take(const Compiled&, const Worker&, double worked);
  // When ranks are processes, every one of them calls this, and gets the same.
  StepResult result(const Compiled&, const StepTaken&);
  bool finite_norm(const Compiled&, const Worker&) const;  // as the rank saw it; it has made the norm

 private:
  double read(const Worker&, u64 at, DType) const;
  double norm(const Compiled&) const;  // of the first rank here that has it; else 0
  double value(const Compiled&, OutputId, int microbatch, i64 element) const;  // of a rank that is here
  std::vector<u64> own_words(const Compiled&, double worked) const;

  const Engine& engine_;
  std::function<u64()> say_;
  std::shared_ptr<Peers> peers_;               // a board goes before its MPI ends
  std::unique_ptr<Board> board_;               // when ranks are processes
  std::vector<std::vector<std::byte>> taken_;  // per rank: its arena of results
};

}  // namespace stretto
