#include "stretto/base/threads.h"

#include <algorithm>
#include <chrono>
#include <system_error>

namespace stretto {

std::thread& Threads::start(std::function<void()> f, std::size_t wanted) {
  try {
    return threads_.emplace_back(std::move(f));
  } catch (const std::system_error& e) {
    const std::size_t made = threads_.size();
    end();
    throw Error("threads", "thread {} of {} cannot be made: {}", made + 1, std::max(wanted, made + 1),
                e.code().message())
        .hint(
            "raise the limit on processes and threads (ulimit -u, a container's limit on pids) or on memory "
            "(ulimit -v), or use fewer ranks")
        .as(Error::Kind::run);
  }
}

void Threads::join() {
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

void Threads::end() {
  if (threads_.empty()) return;
  ask_to_end_();
  join();
}

void Repeated::start(double seconds, std::function<void()> call) {
  thread_.start([this, seconds, call = std::move(call)] {
    std::unique_lock lock(mutex_);
    while (!quit_) {
      lock.unlock();
      call();
      lock.lock();
      changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return quit_; });
    }
  });
}

void Repeated::quit() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
}

}  // namespace stretto
