// The stages of one configuration made better, by its schedule: one piece, or what one stage makes again, at a time, as
// long as that makes the step shorter and nobody holds more than so many bytes.
//
//   Planned better = with_better_stages(problem, predictor, planned, capacity);
#pragma once
#include "stretto/plan/prediction.h"

namespace stretto {

Planned with_better_stages(const PlanProblem&, Predictor&, Planned, double bytes);

}  // namespace stretto
