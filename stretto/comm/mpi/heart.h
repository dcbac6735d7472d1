// A process's sign of life, in memory that all processes of its node see.
#pragma once
#include <atomic>

#include "stretto/base/id.h"

namespace stretto {

struct Heart {
  std::atomic<double> alive{0};  // the steady clock, the same for all processes of a machine
  std::atomic<i64> step{0};
  std::atomic<std::uint32_t> at{0};
  std::atomic<bool> waiting{false};
  int pid = 0;
};

}  // namespace stretto
