#include "stretto/comm/threads/milestone.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace stretto {

void Milestone::sleep(Seen seen) {
  std::uint32_t word = seen.word;
  if (!(word & sleeping_bit) &&
      !word_.compare_exchange_strong(word, word | sleeping_bit, std::memory_order_acq_rel, std::memory_order_acquire))
    return;
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word_), FUTEX_WAIT_PRIVATE, seen.word | sleeping_bit, nullptr,
          nullptr, 0);
}

void Milestone::wake() {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace stretto
