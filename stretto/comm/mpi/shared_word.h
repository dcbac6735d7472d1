// A number in memory that processes share, which one changes and others wait for.
//
//   set_shared(word, 3);                                     // wakes whoever sleeps
//   wait_shared(word, [](std::uint32_t v) { return v == 3; }, spins, stopped);
#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "stretto/base/relax.h"
#include "stretto/comm/stop_flag.h"

namespace stretto {

using SharedWord = std::atomic<std::uint32_t>;
constexpr std::uint32_t shared_sleeping = 1u << 31;  // somebody sleeps on it; values stay below

inline void set_shared(SharedWord& word, std::uint32_t value) {
  if (word.exchange(value, std::memory_order_acq_rel) & shared_sleeping)
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Until it has changed from what was seen, or for a hundredth of a second: the process that sets it may have died.
inline void sleep_shared(SharedWord& word, std::uint32_t seen) {
  if (!(seen & shared_sleeping) &&
      !word.compare_exchange_strong(seen, seen | shared_sleeping, std::memory_order_acq_rel))
    return;
  const timespec limit{.tv_sec = 0, .tv_nsec = 10'000'000};
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen | shared_sleeping, &limit, nullptr, 0);
}

template <class Reached>
void wait_shared(SharedWord& word, Reached reached, int spins, const StopFlag& stopped) {
  for (int i = 0;; ++i) {
    const std::uint32_t seen = word.load(std::memory_order_acquire);
    if (reached(seen & ~shared_sleeping)) return;
    stopped.check();
    if (i < spins)
      relax();
    else
      sleep_shared(word, seen);
  }
}

}  // namespace stretto
