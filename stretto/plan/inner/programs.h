// The last depth of the search: what may be the best is compiled, and nothing twice.
//
//   BestPrograms programs(problem, options, predictor, plan);
//   programs.compile_best(played);
//   programs.compile_better_cuts(), programs.compile_mixed(mixed);
//   std::vector<Planned> best = programs.that_fit();
#pragma once
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "stretto/plan/inner/experience.h"
#include "stretto/plan/inner/mixed.h"
#include "stretto/plan/search.h"

namespace stretto {

inline double cost_of(Objective o, double seconds, double bytes) { return o == Objective::time ? seconds : bytes; }

class BestPrograms {
 public:
  // All of them outlive it; it adds to the plan's counts.
  BestPrograms(const PlanProblem& p, const PlanOptions& o, Predictor& predictor, Plan& plan)
      : p_(p), o_(o), predictor_(predictor), plan_(plan) {}

  void compile_best(const std::vector<Planned>& played);
  void compile_better_cuts();  // of the best programs
  void compile_mixed(const MixedRecompute&);

  std::vector<Planned> that_fit() const;
  std::optional<Planned> smallest() const;
  // Compiled, or known not to fit from those that were.
  bool knows(const RunKeys& k) const { return known_.contains(k); }

 private:
  // What was played, with what its program is thought to cost.
  struct Estimate {
    const Planned* played;
    double cost;
  };
  bool fits(double bytes) const { return bytes <= plan_.capacity; }
  bool likely(const Planned& x) const { return fits(x.bytes * experience_.larger(x.keys)); }
  double cost(const Planned& x) const { return cost_of(o_.objective, x.seconds, x.bytes); }
  double cost_of_best() const;

  std::vector<Estimate> left(const std::vector<Planned>& played) const;
  std::vector<const Planned*> next(const std::vector<Planned>& played) const;
  bool wanted(const Estimate&, std::size_t place, double tasks) const;
  void compile(const std::vector<const Planned*>&);
  bool take(const Planned& thought, Planned);  // does it fit?
  void drop_programs();
  std::vector<Planned*> fitting();  // the best first

  const PlanProblem& p_;
  const PlanOptions& o_;
  Predictor& predictor_;
  Plan& plan_;
  std::vector<Planned> programs_;
  std::set<RunKeys> known_;
  std::set<std::string_view> schedules_;  // of programs that fit
  Experience experience_;
  double tasks_ = 0;  // of all programs together
};

}  // namespace stretto
