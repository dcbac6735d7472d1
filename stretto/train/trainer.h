// Runs a compiled program step by step.
//
//   Trainer trainer(compile(model, adamw({.lr = 1e-3}), {.microbatches = 8}));
//   for (const Batch& batch : data) fmt::print("{}\n", trainer.step(batch).str());
//
// or, so that whoever has finished his part of a step goes on with the next one at once:
//
//   for (auto next = data.begin(); next != data.end() || trainer.steps_under_way() > 0;) {
//     while (trainer.room() && next != data.end()) trainer.submit(*next++);
//     fmt::print("{}\n", trainer.wait().str());
//   }
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
#include "stretto/train/results.h"

namespace stretto {

class Trainer {
 public:
  explicit Trainer(Compiled, RunOptions = {});

  // `record`: filled with who did what from when to when.
  StepResult step(const Batch&, Timeline* record = nullptr);

  // The same in two halves. As long as there is room for one more, the next step may be submitted before the last one
  // is waited for; everything else that touches parameters needs all of them to be. Numbers are those of step().
  // After::finite: it is not run when the step before, which is under way, turns out not to be finite; wait() then
  // gives numbers that mean nothing, and set_step says how many steps there were.
  enum class After : std::uint8_t { any, finite };
  void submit(Batch, After = After::any);
  StepResult wait();  // the oldest one
  int steps_under_way() const { return int(submitted_ - step_); }
  bool room() const { return steps_under_way() < engine_->most_under_way(); }

  // Forward only; `sizes` binds t.batch and t.size dims to other sizes. Traced and compiled once per set of sizes.
  StepResult evaluate(const Batch&, const std::map<std::string, i64>& sizes = {});

  // Logical values, without padding. An unknown name is refused with the nearest known one. When ranks are processes,
  // every one of them makes the same calls in the same order, and gets the same. `memory` is used again.
  Array parameter(std::string_view name, Array memory = {}) const;
  Array gradient(std::string_view name) const;  // of the last step, before clipping
  Array state(std::string_view name, std::string_view which, Array memory = {}) const;
  void set_parameter(std::string_view name, const Array&);
  void set_state(std::string_view name, std::string_view which, const Array&);
  // Of the steps from now on, instead of the optimizer's schedule: of parameters with that ParamOptions::rate.
  void set_rate(const std::string& rate, double lr) { rates_.insert_or_assign(rate, lr); }
  // Steps done before the next one: decides learning rate and dropout. What is under way ends, and if parameters are to
  // be set by some processes only, all of them call this first.
  void set_step(i64 done);
  void settle() const;          // what has been set is there for all processes, as before every step
  u64 parameters_hash() const;  // XXH3 of all logical parameters in name order

  const Compiled& compiled() const { return *compiled_; }
  i64 steps_done() const { return step_; }
  std::vector<KernelTime> profile(int rank = 0) const { return engine_->worker(rank).profile(); }
  const Engine& engine() const { return *engine_; }

 private:
  struct Evaluation {
    Compiled compiled;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<StepNumbers> numbers;
  };
  struct UnderWay {
    i64 step = 0;
    double lr = 0;
    std::map<std::string, double> rates = {};  // those with other names, and where it was set, "lr"
    After after = After::any;
    std::optional<double> factor = 1;  // of clipping, where updates do not wait for the norm; none: it is left out
    std::shared_ptr<const Batch> batch;
    std::unique_ptr<StepNumbers> numbers;
  };
  void start(std::shared_ptr<const Batch>, After);
  StepHooks hooks(UnderWay&) const;
  StepResult result_of(const UnderWay&, const StepTaken&) const;
  // Why a step that has run must run again from what it began with, and how.
  struct Again {
    std::optional<LostRows> lost = {};  // that there must be room for
    std::optional<double> factor = 1;   // as in UnderWay
  };
  std::optional<Again> again(const UnderWay&, const StepResult&) const;
  StepResult run_again(UnderWay&, StepResult, const Again&);
  void make_room(i64 step, const LostRows&);  // the same program with more, over the same values
  StepResult forward(const Compiled&, Engine&, StepNumbers&, const Batch&) const;
  void check_idle(std::string_view what) const;
  ParamId param_index(std::string_view name) const;
  std::size_t state_index(ParamId param, std::string_view which) const;
  enum class Kind : std::uint8_t { param, gradient, state };
  // The parts of all ranks of the actor that updates it, put together.
  Array gathered(ParamId param, Kind, std::size_t which = 0, Array reused = {}) const;
  ReadBytes memory(const Worker&, ParamId param, Kind, std::size_t which) const;  // null: not there
  Offset master_at(const Worker&, ParamId) const;
  std::optional<Slot> own_place(const Worker&, ParamId) const;  // of a parameter that this rank is to fill
  void before_writing();
  void meet() const;  // all processes come here

  std::shared_ptr<const Compiled> compiled_;
  std::unique_ptr<UnderWay[]> under_way_ = std::make_unique<UnderWay[]>(2);  // ranks use them: they stay in place
  std::unique_ptr<Engine> engine_;
  RunOptions options_;
  std::map<std::map<std::string, i64>, Evaluation> evaluations_;
  i64 step_ = 0, submitted_ = 0;
  std::map<std::string, double> rates_;  // that were set
  bool recording_ = false;
  mutable bool writing_ = true;  // parameters are being set; as a process that has none of them also knows
};

}  // namespace stretto
