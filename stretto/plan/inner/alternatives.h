// Why not: of what was scored, the best with every value of a key that the chosen one does not have.
//
//   plan.others = alternatives(plan.scored, plan.best.front().keys, Objective::time);
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "stretto/plan/search.h"

namespace stretto {

std::vector<std::pair<std::string, std::string>> values_of(const RunKeys&);  // {"pipe", "4"}, ...
std::vector<Alternative> alternatives(const std::vector<Planned>& scored, const RunKeys& chosen, Objective);

}  // namespace stretto
