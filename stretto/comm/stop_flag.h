// Set once, from any thread, when another rank has failed: whoever waits looks at it and gives up.
//
//   StopFlag stopped;
//   while (!arrived()) stopped.check(), sleep_a_little();       // an Error once somebody has called stopped.set()
#pragma once
#include <atomic>

#include "stretto/base/error.h"

namespace stretto {

class StopFlag {
 public:
  void set() noexcept { flag_.store(true); }
  bool is_set() const { return flag_.load(std::memory_order_relaxed); }
  void check() const {
    if (is_set()) throw error();
  }
  static Error error() { return Error("runtime", "stopped because another rank failed").as(Error::Kind::run); }

 private:
  std::atomic<bool> flag_{false};
};

}  // namespace stretto
