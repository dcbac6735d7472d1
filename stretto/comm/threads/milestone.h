// A number that goes up and that threads wait for. All threads that sleep are woken; when none sleeps, there is no
// system call. Nothing is allocated.
//
//   Milestone m;
//   m.advance(3);                                    // one thread
//   for (auto seen = m.look(); !seen.reached(3) && !seen.stopped(); seen = m.look()) m.sleep(seen);     // others
#pragma once
#include <atomic>
#include <cstdint>

namespace stretto {

class Milestone {
 public:
  struct Seen {
    std::uint32_t word = 0;
    // Counts modulo 2^30; what is asked for is never 2^29 or more away.
    bool reached(std::uint32_t number) const { return ((word - number) & count_mask) <= count_mask / 2; }
    bool stopped() const { return word & stopped_bit; }
  };
  Seen look() const { return {word_.load(std::memory_order_acquire)}; }
  void advance(std::uint32_t number) {
    const std::uint32_t before = word_.exchange(number & count_mask, std::memory_order_acq_rel);
    if (before & stopped_bit) stop();  // never lost
    if (before & sleeping_bit) wake();
  }
  void sleep(Seen);  // until it is no longer as seen; may return for no reason
  void stop() {
    if (word_.fetch_or(stopped_bit, std::memory_order_acq_rel) & sleeping_bit) wake();
  }

 private:
  static constexpr std::uint32_t sleeping_bit = 1u << 31, stopped_bit = 1u << 30, count_mask = stopped_bit - 1;
  void wake();
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace stretto
