// What is fast and too large, made to fit: stages of actors that are too full make more again, the others do not; or
// they get fewer pieces.
//
//   MixedRecompute mixed(problem, predictor, nearly, choices);
//   std::optional<Planned> faster = mixed.best([&](const RunKeys&) { return capacity; });
#pragma once
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "stretto/plan/prediction.h"

namespace stretto {

struct Scored {
  const RunKeys* keys = nullptr;
  double seconds = 0, bytes = 0;
};

class MixedRecompute {
 public:
  // Of these, which are too large, a few; `choices`: what stages may make again.
  MixedRecompute(const PlanProblem&, Predictor&, const std::vector<const RunKeys*>&,
                 const std::vector<Recompute>& choices);

  // The shortest by its schedule; none: nothing can be made to fit. `room`: the bytes that each may hold then.
  std::optional<Planned> best(const std::function<double(const RunKeys&)>& room) const;

 private:
  const PlanProblem& p_;
  Predictor& predictor_;
  const std::vector<Recompute>& choices_;
  std::vector<std::pair<const RunKeys*, Recompute>> all_;  // what is too large, and what stages may make again instead
};

// The few that may be faster than `best` seconds when only as much is made again as has to be; `states`: bytes that
// recompute cannot change.
std::vector<const RunKeys*> worth_relieving(std::vector<Scored>, const std::function<double(const RunKeys&)>& states,
                                            double capacity, double best);

}  // namespace stretto
