#include "stretto/optim/lr.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/text.h"

namespace stretto {
namespace {

double warm(const LrShape& s, i64 step) {
  return s.warmup > 0 && step < s.warmup ? 1.0 * step / s.warmup : 1;
}

// How far a decay that starts at step `from` has come, 0 to 1.
double progress(const LrShape& s, i64 step, i64 from) {
  return std::clamp(1.0 * (step - from) / std::max<i64>(1, s.steps - from), 0.0, 1.0);
}

double after_warmup(const LrShape& s, i64 step, double shape) {
  return s.peak * (step < s.warmup ? warm(s, step) : s.floor + (1 - s.floor) * shape);
}

}  // namespace

LearningRate constant_lr(double rate) {
  return [rate](i64) { return rate; };
}

LearningRate cosine_lr(LrShape s) {
  return [s](i64 step) {
    return after_warmup(s, step, 0.5 * (1 + std::cos(std::numbers::pi * progress(s, step, s.warmup))));
  };
}

LearningRate linear_lr(LrShape s) {
  return [s](i64 step) { return after_warmup(s, step, 1 - progress(s, step, s.warmup)); };
}

LearningRate wsd_lr(LrShape s) {
  const i64 from = std::max(s.warmup, static_cast<i64>(s.stable * s.steps));
  return [s, from](i64 step) { return after_warmup(s, step, 1 - progress(s, step, from)); };
}

LearningRate lr_named(const std::string& name, LrShape s) {
  if (name == "constant") return [s](i64 step) { return s.peak * warm(s, step); };
  if (name == "cosine") return cosine_lr(s);
  if (name == "linear") return linear_lr(s);
  if (name == "wsd") return wsd_lr(s);
  const std::vector<std::string> known{"constant", "cosine", "linear", "wsd"};
  const auto near = nearest(name, known);
  throw Error("optimizer", "there is no learning-rate schedule '{}'", name)
      .hint("{}known are {}", near ? "did you mean '" + *near + "'? " : "", join(known, ", "));
}

}  // namespace stretto
