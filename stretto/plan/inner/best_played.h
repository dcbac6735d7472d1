// Of configurations whose schedules were played, those that may be the best are judged again: with every turn as
// programs have it, and with pieces moved from stage to stage.
//
//   judge_by_turns(predictor, played, capacity, options);
//   better_cuts(problem, predictor, played, capacity, options);
//   const Planned* best = by_cost(played, options.objective).front();
#pragma once
#include <vector>

#include "stretto/plan/search.h"

namespace stretto {

std::vector<const Planned*> by_cost(const std::vector<Planned>&, Objective);

// So long until the best that fit into `room` bytes are all judged by their turns.
void judge_by_turns(Predictor&, std::vector<Planned>&, double room, const PlanOptions&);

// Found by schedules, judged by turns.
void better_cuts(const PlanProblem&, Predictor&, std::vector<Planned>&, double room, const PlanOptions&);

}  // namespace stretto
