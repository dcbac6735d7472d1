// Makes fast configurations fit that are too large: stages of actors that are too full recompute more, or get fewer
// pieces; the others stay as they are.
//
//   MixedRecompute mixed(problem, predictor, nearly, choices);
//   std::optional<Planned> faster = mixed.best([&](const RunKeys&) { return capacity; });
#pragma once
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "stretto/plan/inner/prediction.h"

namespace stretto {

struct Scored {
  const RunKeys* keys = nullptr;
  double seconds = 0, bytes = 0;
};

class MixedRecompute {
 public:
  // A few configurations that are too large; `choices`: the kinds of recompute that stages may have.
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

// The few that may be faster than `best` seconds with no more recompute than they need; `states`: bytes that recompute
// cannot change.
std::vector<const RunKeys*> worth_relieving(std::vector<Scored>, const std::function<double(const RunKeys&)>& states,
                                            double capacity, double best);

}  // namespace stretto
