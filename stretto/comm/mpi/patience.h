// Waiting without holding a core: looks a few times, then sleeps a little longer each time.
//
//   Patience p(spins);
//   while (!done()) p.pause();
//   double seconds = p.waited();
#pragma once
#include <time.h>

#include "stretto/base/clock.h"

#include <algorithm>

namespace stretto {

class Patience {
 public:
  explicit Patience(int spins) : spins_(spins) {}
  // A sixteenth of what has been waited so far: short waits end soon, long ones cost next to nothing.
  void pause() {
    if (spins_-- > 0) return;
    const double t = now();
    if (start_ == 0) start_ = t;
    const double seconds = std::clamp((t - start_) / 16, 20e-6, 1e-3);
    const timespec s{.tv_sec = 0, .tv_nsec = long(seconds * 1e9)};
    nanosleep(&s, nullptr);
  }
  double waited() const { return start_ == 0 ? 0 : now() - start_; }

 private:
  int spins_;
  double start_ = 0;
};

}  // namespace stretto
