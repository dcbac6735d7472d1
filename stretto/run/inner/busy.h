// Says once that other programs use the cores that a run needs: its predicted time is of a machine that is idle.
//
//   BusyMachine busy(0.0115);                         // predicted seconds of a step
//   if (auto line = busy.after(steps, seconds, core_time())) console.say(*line);
#pragma once
#include <optional>
#include <string>

#include "stretto/base/id.h"

namespace stretto {

struct CoreTime {
  double ran = 0, waited = 0;  // seconds on a core, and ready to run without one
};
CoreTime core_time();  // of all threads of this process that there are; zeros where the system does not say

class BusyMachine {
 public:
  explicit BusyMachine(double predicted) : predicted_(predicted), start_(core_time()) {}
  // After so many steps, which took so many seconds.
  std::optional<std::string> after(i64 steps, double seconds, const CoreTime& now);

 private:
  double predicted_;
  CoreTime start_;
  bool told_ = false;
};

}  // namespace stretto
