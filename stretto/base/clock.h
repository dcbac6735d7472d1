// Seconds of the steady clock.
//
//   const double start = now();  ...  const double took = now() - start;
#pragma once
#include <chrono>

namespace stretto {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void sleep_until(double time);  // wakes as closely as the system can

}  // namespace stretto
