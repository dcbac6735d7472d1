#include "stretto/kernels/async/lane_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace stretto {

void LaneWord::advance(std::uint32_t n) {
  word_.store(n, std::memory_order_release);
  wake();
}

void LaneWord::wake() const { syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

void LaneWord::sleep(std::uint32_t seen) const {
  const timespec moment{.tv_sec = 0, .tv_nsec = 10'000'000};
  syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, seen, &moment, nullptr, 0);
}

}  // namespace stretto
