// Runs a compiled program step by step.
//
//   Trainer trainer(compile(model, adamw({.lr = 1e-3}), {.microbatches = 8}));
//   for (const Batch& batch : data) fmt::print("{}\n", trainer.step(batch).str());
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stretto/base/array.h"
#include "stretto/compile/compile.h"
#include "stretto/runtime/engine.h"
#include "stretto/runtime/options.h"
#include "stretto/schedule/timeline.h"
#include "stretto/train/logical.h"

namespace stretto {

struct StepResult {
  i64 step = 0;  // from 1
  double loss = 0, grad_norm = 0, lr = 0;
  bool updated = true;  // false: the loss or the norm was not finite and the parameters were left as they are
  double seconds = 0;   // of the step itself
  double bubble = 0;    // share of the actors' time without work
  std::map<std::string, double> metrics;             // loss terms and the model's own
  std::map<std::string, std::vector<double>> lists;  // metrics that are concatenated, rows in batch order
  std::string str() const;
};

class Trainer {
 public:
  explicit Trainer(Compiled, RunOptions = {});

  // `record`: filled with who did what from when to when.
  StepResult step(const Batch&, Timeline* record = nullptr);
  // Forward only; `sizes` binds t.batch and t.size dims to other sizes. Traced and compiled once per set of sizes.
  StepResult evaluate(const Batch&, const std::map<std::string, i64>& sizes = {});

  // Logical values, without padding. An unknown name is refused with the nearest known one. When ranks are processes,
  // every one of them makes the same calls in the same order, and gets the same. `memory` is used again.
  Array parameter(std::string_view name, Array memory = {}) const;
  Array gradient(std::string_view name) const;  // of the last step, before clipping
  Array state(std::string_view name, std::string_view which, Array memory = {}) const;
  void set_parameter(std::string_view name, const Array&);
  void set_state(std::string_view name, std::string_view which, const Array&);
  void set_step(i64 done) { step_ = done; }  // steps done before this one began: decides learning rate and dropout
  u64 parameters_hash() const;               // XXH3 of all logical parameters in name order

  const Compiled& compiled() const { return compiled_; }
  i64 steps_done() const { return step_; }
  std::vector<KernelTime> profile(int rank = 0) const { return engine_->worker(rank).profile(); }
  const Engine& engine() const { return *engine_; }

 private:
  struct Evaluation {
    Compiled compiled;
    std::unique_ptr<Engine> engine;
  };
  ParamId param_index(std::string_view name) const;
  std::size_t state_index(ParamId param, std::string_view which) const;
  enum class Kind : std::uint8_t { param, gradient, state };
  // The parts of all ranks of the actor that updates it, put together.
  Array gathered(ParamId param, Kind, std::size_t which = 0, Array reused = {}) const;
  ReadBytes memory(const Worker&, ParamId param, Kind, std::size_t which) const;  // null: not there
  Offset master_at(const Worker&, ParamId) const;

  Compiled compiled_;
  std::unique_ptr<Engine> engine_;
  RunOptions options_;
  std::map<std::map<std::string, i64>, Evaluation> evaluations_;
  i64 step_ = 0;
};

}  // namespace stretto
