// One message's arrival, anew in every round: one thread announces it, another waits for it. A system call wakes
// the waiting thread only if it really sleeps. Nothing is allocated.
//
//   Arrival a;
//   a.announce(1);                        // the sender, in round 1
//   bool there = a.wait(1, spins);        // the receiver; false: stopped
#pragma once
#include <atomic>
#include <cstdint>

namespace stretto {

class Arrival {
 public:
  void announce(std::uint32_t round) {
    const std::uint32_t before = word_.exchange(round, std::memory_order_acq_rel);
    if (before & stopped_bit) stop();  // never lost
    if (before & sleeping_bit) wake();
  }
  bool there(std::uint32_t round) const { return word_.load(std::memory_order_acquire) == round; }
  bool wait(std::uint32_t round, int spins);  // looks `spins` times before it sleeps
  void stop() {
    if (word_.fetch_or(stopped_bit, std::memory_order_acq_rel) & sleeping_bit) wake();
  }

 private:
  static constexpr std::uint32_t sleeping_bit = 1u << 31, stopped_bit = 1u << 30;
  void wake();
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace stretto
