#include "stretto/base/threads.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <system_error>

namespace stretto {

namespace {

void run_on(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  if (!cores.empty()) sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

std::vector<int> usable_cores() {
  cpu_set_t set;
  std::vector<int> all;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) all.push_back(i);
  if (all.empty()) all.push_back(0);
  return all;
}

OnCores::OnCores(const std::vector<int>& cores) {
  if (cores.empty()) return;
  before_ = usable_cores();
  run_on(cores);
}
OnCores::~OnCores() { run_on(before_); }

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
