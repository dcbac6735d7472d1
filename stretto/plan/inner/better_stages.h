// The stages of one configuration made better, by its schedule: one piece, or what one stage makes again, at a time, as
// long as that makes the step shorter and nobody holds more than so many bytes.
//
//   const auto play = [&](const RunKeys& k) { return predictor.by_schedule(k); };
//   Planned better = with_better_stages(problem, predictor.ready(keys), play, capacity);
#pragma once
#include <functional>

#include "stretto/plan/prediction.h"

namespace stretto {

using PlayKeys = std::function<Planned(const RunKeys&)>;  // by their schedule
Planned with_better_stages(const PlanProblem&, const Ready&, const PlayKeys&, double bytes);

}  // namespace stretto
