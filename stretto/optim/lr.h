// Learning rates as functions of the step (from 1).
//
//   LearningRate lr = cosine_lr({.peak = 3e-4, .warmup = 100, .steps = 1000, .floor = 0.1});
#pragma once
#include <functional>
#include <string>

#include "stretto/base/id.h"

namespace stretto {

using LearningRate = std::function<double(i64 step)>;

struct LrShape {
  double peak = 3e-4;
  i64 warmup = 0;       // steps of linear rise
  i64 steps = 1000;     // of the whole run
  double floor = 0.1;   // the last rate, as a part of the peak
  double stable = 0.8;  // WSD: where decay starts, as a part of the run
};

LearningRate constant_lr(double rate);
LearningRate cosine_lr(LrShape);
LearningRate linear_lr(LrShape);
LearningRate wsd_lr(LrShape);  // warm-up, stable, decay
// "constant", "cosine", "linear" or "wsd"; anything else is refused with the nearest name.
LearningRate lr_named(const std::string& name, LrShape);

}  // namespace stretto
