#include "stretto/base/arrival.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stretto/base/relax.h"

namespace stretto {

bool Arrival::wait(std::uint32_t round, int spins) {
  for (int i = 0;; ++i) {
    std::uint32_t seen = word_.load(std::memory_order_acquire);
    if (seen == round) return true;
    if (seen & stopped_bit) return false;
    if (i < spins) {
      relax();
      continue;
    }
    if (!(seen & sleeping_bit) &&
        !word_.compare_exchange_strong(seen, seen | sleeping_bit, std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word_), FUTEX_WAIT_PRIVATE, seen | sleeping_bit, nullptr,
            nullptr, 0);
  }
}

void Arrival::wake() {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace stretto
