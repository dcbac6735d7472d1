// What no configuration can be below, from its keys alone: a nanosecond where facts take milliseconds.
//
//   const Bounds bounds(problem, flops);
//   if (bounds.bytes(keys) > capacity) ...     // states alone do not fit
//   if (bounds.seconds(keys) > bar) ...        // too slow even if nothing but arithmetic took time
#pragma once
#include "stretto/plan/problem.h"

namespace stretto {

class Bounds {
 public:
  Bounds(const PlanProblem&, double flops);

  double seconds(const RunKeys&) const;
  double bytes(const RunKeys&) const;

 private:
  double talk(const RunKeys&) const;

  const PlanProblem& p_;
  double ideal_ = 0;       // seconds of a step if all ranks did nothing but arithmetic
  double parameters_ = 0;  // of the model
};

}  // namespace stretto
