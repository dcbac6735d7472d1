// The last depth of the search: what is the best by its schedule is compiled.
//
//   BestPrograms programs(problem, options, predictor, plan);
//   programs.compile_best(order, mixed);            // the best first
//   std::vector<Planned> best = programs.that_fit();
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "stretto/plan/inner/held_more.h"
#include "stretto/plan/inner/mixed.h"
#include "stretto/plan/search.h"

namespace stretto {

constexpr double memory_slack = 1.03;  // quick models' memory may be so much too large
inline double cost_of(Objective o, double seconds, double bytes) { return o == Objective::time ? seconds : bytes; }

class BestPrograms {
 public:
  // All of them outlive it; it adds to the plan's counts.
  BestPrograms(const PlanProblem& p, const PlanOptions& o, Predictor& predictor, Plan& plan)
      : p_(p), o_(o), predictor_(predictor), plan_(plan) {}

  void compile_best(std::vector<const Planned*> order, const MixedRecompute&);

  std::vector<Planned> that_fit() const;
  std::optional<Planned> smallest() const;
  // Compiled, or known not to fit from those that were.
  bool knows(const RunKeys& k) const { return known_.contains(k); }

 private:
  using Left = std::vector<const Planned*>;  // the best first; null: taken
  using Fits = bool (BestPrograms::*)(const Planned&) const;
  bool fits(double bytes) const { return bytes <= plan_.capacity; }
  bool likely(const Planned& x) const { return fits(x.bytes * held_.times(x.keys)); }
  bool perhaps(const Planned& x) const { return fits(x.bytes / memory_slack); }
  double cost(const Planned& x) const { return cost_of(o_.objective, x.seconds, x.bytes); }

  std::vector<const Planned*> next(Left&, std::size_t most, Fits) const;
  std::vector<Planned> compiled(const std::vector<const Planned*>&);
  bool take(const Planned& thought, Planned);  // does it fit?
  void compile_mixed(const MixedRecompute&);
  void compile_rivals(Left&);
  std::vector<const Planned**> rivals_of_the_best(Left&, int most);
  bool may_have_own_cuts(const Planned&) const;
  void take_own_cuts(Planned);
  Planned* fastest();  // that fits; null: none does

  const PlanProblem& p_;
  const PlanOptions& o_;
  Predictor& predictor_;
  Plan& plan_;
  std::vector<Planned> programs_;
  std::set<RunKeys> known_;
  HeldMore held_;
  std::map<RunKeys, double> longer_;     // times what their schedules say
  std::map<RunKeys, Planned> own_cuts_;  // of what was the best when they were compiled beside another
};

}  // namespace stretto
