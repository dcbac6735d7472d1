// What a model says may follow every token of some rows: for measures of one's own, such as which of several answers is
// the likeliest.
//
//   Scorer scorer(m.config, m.weights);
//   Array logits = scorer.logits(ids);      // i32[rows, length] -> [rows, length, vocab]
#pragma once
#include "stretto/models/hf.h"
#include "stretto/train/trainer.h"

namespace stretto {

class Scorer {
 public:
  Scorer(const ModelConfig&, const Weights&);
  // Rows of any length up to the model's context; compiled once per length.
  Array logits(const Array& ids);

 private:
  ModelConfig config_;
  Trainer forward_;
};

}  // namespace stretto
