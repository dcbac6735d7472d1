// Seconds of the steady clock, for measuring.
//
//   const double start = now();  ...  const double took = now() - start;
#pragma once
#include <chrono>

namespace stretto {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace stretto
