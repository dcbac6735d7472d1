// Ctrl-C, or SIGTERM, asks a run to end after the current step; a second one
// ends the process at once.
//
//   const StopSignals stop;
//   while (!stop.asked()) step();
#pragma once
#include <csignal>

namespace stretto {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();  // puts back what was there before
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  bool asked() const;

 private:
  struct sigaction interrupt_ {
  }, terminate_{};
};

}  // namespace stretto
