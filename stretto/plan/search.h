// The search: bounds for all, stages for those below the bar, the schedule's play for the best of them, the program for
// the very best. The same answer every time, whatever the machine and the number of threads.
//
//   Plan plan = make_plan(problem, space, {.top = 10});
//   fmt::print("{}: {} s\n", plan.best.at(0).keys.str(), plan.best.at(0).seconds);
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stretto/plan/planned.h"
#include "stretto/plan/space.h"

namespace stretto {

enum class Objective : std::uint8_t { time, memory };

struct PlanOptions {
  int top = 10;          // how many the user wants to see
  int compiled = 5;      // of them by their program
  double margin = 0.02;  // the model's own error: what lies within it is as good
  double memory = 1;     // share of a rank's memory that may be planned
  bool quick = false;    // nothing is compiled
  Objective objective = Objective::time;
  Each each = one_by_one();
  // What is being done, done, of how many.
  std::function<void(std::string_view, double, double)> progress = {};
};

struct Counts {
  i64 tried = 0;
  i64 states = 0, memory = 0, bound = 0, refused = 0;  // went because of: states alone, all memory, a bound, a fault
  i64 fit = 0, played = 0, compiled = 0;
  i64 meshes = 0, facts = 0;
};

// The best with one value of a key that the best plan does not have.
struct Alternative {
  std::string key, value;
  Planned best;
};

struct Plan {
  std::vector<Planned> best;            // first the one to take; the first `compiled` by their program
  std::vector<Planned> as_good;         // within the margin of it, beyond `best` too
  std::vector<Alternative> others;      // why not
  std::vector<Planned> scored;          // all that were played or compiled, for pictures
  std::optional<Planned> nearest = {};  // when nothing fits: the one with the least memory
  Counts counts;
  double flops = 0;     // of a step
  double capacity = 0;  // bytes of a rank that may be planned
};

Plan make_plan(const PlanProblem&, const PlanSpace&, const PlanOptions& = {});

// Exactly these, in their order; what cannot be has a reason in `refused`.
std::vector<Planned> score(const PlanProblem&, const std::vector<RunKeys>&, const PlanOptions& = {});

// Model flops of the step over what all ranks could do in that time.
double mfu(const PlanProblem&, double flops, double seconds);

}  // namespace stretto
