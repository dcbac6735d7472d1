// What a run does between its steps beside saving: it remembers the best validation, gives up when none gets better,
// and lets the model go on with a prompt.
//
//   BestLoss best(journal->curve());
//   if (best.put(step, loss)) save();
//   if (best.tries() >= patience) stop();
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stretto/config/run.h"
#include "stretto/saved/model_directory.h"
#include "stretto/train/trainer.h"

namespace stretto {

class Peers;
struct CurvePoint;

class BestLoss {
 public:
  BestLoss() = default;
  explicit BestLoss(const std::vector<CurvePoint>& before);  // of a run that goes on
  bool put(i64 step, double loss);                           // is it the best so far?
  i64 tries() const { return tries_; }                       // since the best one
  i64 step() const { return step_; }
  std::optional<double> loss() const { return loss_; }
  void share(Peers&);  // all processes get what the first one has

 private:
  std::optional<double> loss_;
  i64 step_ = 0, tries_ = 0;
};

// What it goes on with, in one line.
std::string sample_of(const StoredModel&, const std::string& prompt, const std::string& tokenizer);

}  // namespace stretto
