// What a lane has to do: one thread adds to it, another does it, in order. No place is used twice within a step, and
// nothing is allocated once a step has been as long.
//
//   LaneQueue lane({.jitter = 1e-4, .seed = 1}, first_failure);
//   lane.push([=] { work(); });                     // the host; trivially copyable
//   lane.serve();                                   // the lane's thread, until quit()
//   lane.done().wait_for(lane.pushed(), [] {});     // whoever waits
#pragma once
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>

#include "stretto/base/error.h"
#include "stretto/base/id.h"
#include "stretto/kernels/async/lane_word.h"
#include "stretto/kernels/team.h"

namespace stretto {

struct AsyncOptions {
  double jitter = 0;  // up to so many seconds are slept now and then before something runs, differently for every seed
  u64 seed = 0;
  TeamOptions team = {};  // threads that share a kernel's work
};

class LaneQueue {
 public:
  // The first of a device's lanes in which something was thrown. From then on all of them pass over what they have to
  // do, and whoever waits for one of them looks here.
  using FirstFailure = std::atomic<const LaneQueue*>;
  LaneQueue(AsyncOptions o, FirstFailure& failed) : jitter_(o.jitter), random_(o.seed * 1000003 + 1), failed_(failed) {}

  template <class Work>
  void push(const Work& work) {
    static_assert(sizeof(Work) <= room_each && std::is_trivially_copyable_v<Work>);
    Item& item = place(next_);
    new (item.work) Work(work);
    item.run = [](void* w) { (*std::launder(static_cast<Work*>(w)))(); };
    pushed_.advance(++next_);
  }
  void serve();
  void quit();

  const LaneWord& done() const { return done_; }
  std::uint32_t pushed() const { return next_; }
  std::exception_ptr failure() const { return failure_; }  // of the first that failed
  void begin_again() { base_ = next_; }                    // everything is done: its memory is used again

 private:
  static constexpr std::size_t room_each = 960, block = 64, most_blocks = 1 << 16;
  struct Item {
    void (*run)(void*);
    alignas(16) std::byte work[room_each];
  };
  Item& place(std::uint32_t n);
  void run(std::uint32_t n);
  void dawdle();

  // Blocks never move: the lane reads while the host adds.
  std::unique_ptr<std::unique_ptr<Item[]>[]> blocks_ = std::make_unique<std::unique_ptr<Item[]>[]>(most_blocks);
  std::uint32_t next_ = 0, base_ = 0;  // the host's; base: the first of this step
  LaneWord pushed_, done_;
  std::atomic<bool> quit_{false};
  double jitter_;
  u64 random_;
  FirstFailure& failed_;
  std::exception_ptr failure_;
};

}  // namespace stretto
