// Of what a search found, the best that other software can have: stages take whole layers, and all of them recompute
// alike.
//
//   const Planned best = best_for(target, problem, plan, options);
//   const std::string text = target.text(plan_to_write(problem, best.keys, run));
#pragma once
#include "stretto/exports/target.h"
#include "stretto/plan/search.h"

namespace stretto {

// Predicted again with such stages. What cannot be expressed at all is an Error.
Planned best_for(const Target&, const PlanProblem&, const Plan&, const PlanOptions&);

PlanToWrite plan_to_write(const PlanProblem&, const RunConfig&, const RunKeys&);

}  // namespace stretto
