#include "stretto/comm/threads/milestone.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace stretto {

void Milestone::sleep(Seen seen, double seconds) {
  std::uint32_t word = seen.word;
  if (!(word & sleeping_bit) &&
      !word_.compare_exchange_strong(word, word | sleeping_bit, std::memory_order_acq_rel, std::memory_order_acquire))
    return;
  const timespec limit{.tv_sec = time_t(seconds), .tv_nsec = long((seconds - double(time_t(seconds))) * 1e9)};
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word_), FUTEX_WAIT_PRIVATE, seen.word | sleeping_bit,
          seconds < 0 ? nullptr : &limit, nullptr, 0);
}

void Milestone::wake() {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace stretto
