#include "stretto/base/clock.h"

#include <time.h>

#include <cerrno>

namespace stretto {

void sleep_until(double time) {
  const time_t whole = time;
  const timespec t{.tv_sec = whole, .tv_nsec = static_cast<long>((time - whole) * 1e9)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) continue;
}

}  // namespace stretto
