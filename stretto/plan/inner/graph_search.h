// The search for a model that is data: it has no layers of which a few could be measured, so every configuration is
// known by its program alone. One of each mesh is compiled; then, of the best few meshes, one key after the other takes
// the value with which the program is best, until none gets better.
//
//   Plan plan = plan_of_graph(problem, space, {.top = 10});
#pragma once
#include "stretto/plan/search.h"

namespace stretto {

Plan plan_of_graph(const PlanProblem&, const PlanSpace&, const PlanOptions&);

}  // namespace stretto
