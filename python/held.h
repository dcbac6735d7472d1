// Trainers that Python holds, by numbers.
//
//   const Use t(a);        // the one that the arguments name, until `t` ends
//   t->step(batch);
#pragma once
#include <memory>
#include <mutex>
#include <optional>

#include "calls.h"
#include "stretto/generate/scorer.h"
#include "stretto/saved/model_directory.h"

namespace stretto::python {

struct HeldTrainer {
  RunConfig run;
  Trainer trainer;
  std::mutex busy = {};  // of several threads that call one trainer, one goes on
  // The model as it is now, made when it is asked for and forgotten when it changes.
  std::optional<StoredModel> model = {};
  std::optional<Scorer> scorer = {};

  HeldTrainer(RunConfig r, Trainer t) : run(std::move(r)), trainer(std::move(t)) {}
  const StoredModel& current();
  void changed() { model.reset(), scorer.reset(); }
};

i64 hold(std::shared_ptr<HeldTrainer>);
void forget(i64 id);   // in a fork nothing is done
void check_process();  // an Error in a fork

class Use {
 public:
  explicit Use(const Arguments& a) : held_(found(a)), busy_(held_->busy) {}
  Trainer* operator->() const { return &held_->trainer; }
  Trainer& operator*() const { return held_->trainer; }
  HeldTrainer& all() const { return *held_; }
  const RunConfig& run() const { return held_->run; }

 private:
  static std::shared_ptr<HeldTrainer> found(const Arguments&);
  std::shared_ptr<HeldTrainer> held_;
  std::unique_lock<std::mutex> busy_;
};

}  // namespace stretto::python
