#include "stretto/kernels/async/lane_queue.h"

#include <chrono>
#include <thread>

namespace stretto {

LaneQueue::Item& LaneQueue::place(std::uint32_t n) {
  const std::uint32_t at = n - base_;
  STRETTO_ASSERT(at < most_blocks * block, "a step has more launches than a lane has room for");
  std::unique_ptr<Item[]>& items = blocks_[at / block];
  if (!items) items = std::make_unique_for_overwrite<Item[]>(block);
  return items[at % block];
}

void LaneQueue::serve() {
  std::uint32_t n = 0;
  while (true) {
    const std::uint32_t pushed = pushed_.now();
    if (pushed == n) {
      if (quit_.load(std::memory_order_acquire)) return;
      pushed_.sleep(pushed);
      continue;
    }
    for (; n != pushed; ++n) {
      run(n);
      done_.advance(n + 1);
    }
  }
}

void LaneQueue::run(std::uint32_t n) {
  if (failed_.load(std::memory_order_relaxed)) return;
  try {
    if (jitter_ > 0) dawdle();
    Item& item = place(n);
    item.run(item.work);
  } catch (...) {
    failure_ = std::current_exception();
    const LaneQueue* nobody = nullptr;
    failed_.compare_exchange_strong(nobody, this, std::memory_order_release, std::memory_order_relaxed);
  }
}

// One in four.
void LaneQueue::dawdle() {
  random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
  const u64 random = random_ >> 33;
  if (random % 4 == 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(jitter_ * static_cast<double>(random / 4 % 1000) / 1000));
}

void LaneQueue::quit() {
  quit_.store(true, std::memory_order_release);
  pushed_.wake();
}

}  // namespace stretto
