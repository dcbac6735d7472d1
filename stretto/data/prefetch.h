// Batches that are read on a thread of their own, ahead of who asks for them.
//
//   Prefetch<Rows> batches([&](i64 step) { return training.at(step); }, {.first = 1, .last = 300});
//   for (i64 step = 1; step <= 300; ++step) use(batches.next());
//
// At most `ahead` batches wait. What goes wrong while a batch is read is thrown by the next() that asks for it.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>
#include <variant>

#include "stretto/base/error.h"
#include "stretto/base/id.h"
#include "stretto/base/threads.h"

namespace stretto {

struct PrefetchOptions {
  i64 first = 1, last = 1;
  std::size_t ahead = 4;
};

template <class T>
class Prefetch {
 public:
  Prefetch(std::function<T(i64 index)> read, const PrefetchOptions& o)
      : read_(std::move(read)), options_(checked(o)), asked_(o.first) {
    thread_.start([this] { work(); });
  }

  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // Batches first to last in order, each once. An error ends it: every later call throws the same.
  T next() {
    std::unique_lock lock(mutex_);
    STRETTO_ASSERT(asked_ <= options_.last, "no batch is left to ask for");
    ready_.wait(lock, [&] { return !waiting_.empty(); });
    if (const auto* error = std::get_if<std::exception_ptr>(&waiting_.front())) std::rethrow_exception(*error);
    T batch = std::move(std::get<T>(waiting_.front()));
    waiting_.pop_front();
    ++asked_;
    room_.notify_one();
    return batch;
  }

 private:
  using Result = std::variant<T, std::exception_ptr>;

  static const PrefetchOptions& checked(const PrefetchOptions& o) {
    STRETTO_ASSERT(o.ahead > 0, "room for at least one batch");
    return o;
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    room_.notify_one();
  }

  void work() {
    for (i64 index = options_.first; index <= options_.last; ++index) {
      {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [&] { return stopped_ || waiting_.size() < options_.ahead; });
        if (stopped_) return;
      }
      Result result = attempt(index);
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(result));
      ready_.notify_one();
      if (std::holds_alternative<std::exception_ptr>(waiting_.back())) return;
    }
  }

  Result attempt(i64 index) {
    try {
      return Result(std::in_place_index<0>, read_(index));
    } catch (...) {
      return Result(std::in_place_index<1>, std::current_exception());
    }
  }

  std::function<T(i64)> read_;
  PrefetchOptions options_;
  std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::deque<Result> waiting_;
  i64 asked_;
  bool stopped_ = false;
  Threads thread_{[this] { stop(); }};  // last: ends before anything that it uses goes away
};

}  // namespace stretto
