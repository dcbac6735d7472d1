// A number that one thread counts up and others wait for, each word with a futex of its own. Whoever waits leaves no
// trace in it: nothing is ordered but what came before the count and what follows the wait. std::atomic::wait shares
// words between unrelated waiters, which orders lanes by accident and hides a wait that is missing.
//
//   LaneWord arrived;
//   arrived.advance(3);                                        // one thread
//   arrived.wait_for(3, [&] { stopped.check(); });             // others; it looks now and then, and may throw
#pragma once
#include <atomic>
#include <cstdint>

namespace stretto {

class LaneWord {
 public:
  std::uint32_t now() const { return word_.load(std::memory_order_acquire); }
  bool reached(std::uint32_t n) const { return static_cast<std::int32_t>(now() - n) >= 0; }
  void advance(std::uint32_t n);
  void wake() const;
  void sleep(std::uint32_t seen) const;  // until it is no longer `seen`, and for a moment at most

  template <class Look>
  void wait_for(std::uint32_t n, Look look) const {
    for (std::uint32_t seen = now(); !reached(n); seen = now()) {
      look();
      sleep(seen);
    }
  }

 private:
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace stretto
