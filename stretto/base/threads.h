// The one place where threads are started and joined. One that the system refuses to make is an Error that says what
// to do; those that run already are asked to end and joined before anything they use goes away.
//
//   Threads workers([this] { quit(); });       // the last member: begins after and ends before everything it uses
//   workers.start([this] { serve(); });
//   Repeated beating;
//   beating.start(0.1, [this] { beat(); });    // now, and every tenth of a second until it ends
//   const OnCores here({2, 3});                // what starts while it lives runs on these cores
//   std::future<int> sum = in_background([&] { return add(numbers); });
#pragma once
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "stretto/base/error.h"

namespace stretto {

std::vector<int> usable_cores();  // that this process may use; never none

// This thread, and every one that it starts, runs on these cores until this goes away. Where the system refuses, and
// for none, it runs where it may.
class OnCores {
 public:
  explicit OnCores(const std::vector<int>& cores);
  ~OnCores();
  OnCores(const OnCores&) = delete;

 private:
  std::vector<int> before_;
};

class Threads {
 public:
  // `ask_to_end`: makes the functions of all threads return soon; may be called more than once.
  explicit Threads(std::function<void()> ask_to_end = [] {}) : ask_to_end_(std::move(ask_to_end)) {}
  ~Threads() { end(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // `wanted`: of how many this is one, for the message. When it cannot be made, the others have ended.
  std::thread& start(std::function<void()>, std::size_t wanted = 1);
  void join();  // without asking
  void end();   // asks, and joins
  bool empty() const { return threads_.empty(); }

 private:
  std::function<void()> ask_to_end_;
  std::vector<std::thread> threads_;
};

// Calls a function at intervals, on a thread of its own.
class Repeated {
 public:
  void start(double seconds, std::function<void()>);
  void end() { thread_.end(); }

 private:
  void quit();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool quit_ = false;
  Threads thread_{[this] { quit(); }};
};

// Runs on a thread of its own; where none can be made, here and now: what has to be done is done, only later.
// The future waits for it when it goes away.
template <class F>
auto in_background(F f) -> std::future<decltype(f())> {
  try {
    return std::async(std::launch::async, f);
  } catch (const std::system_error&) {
    std::packaged_task<decltype(f())()> here(std::move(f));
    here();
    return here.get_future();
  }
}

}  // namespace stretto
