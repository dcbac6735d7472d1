// Ends the process when a call that only returns together with the other processes has not returned in time: nothing
// can be done about a thread that waits inside of MPI.
//
//   Alarm alarm([] { return WaitLimit{600, "parallel.timeout"}; }, rank, give_up, about);
//   const auto held = alarm.during("MPI starts");       // until it goes out of scope
//   MPI_Init(...);
#pragma once
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/threads.h"

namespace stretto {

// How long the others may be waited for now, and the key that says so; 0: for ever.
struct WaitLimit {
  double seconds = 0;
  std::string_view key;
};

class Alarm {
 public:
  using GiveUp = std::function<void(const Error&)>;
  // `about` is added to what is said: which of the others give no sign of life.
  Alarm(std::function<WaitLimit()> limit, int rank, GiveUp give_up, std::function<std::string()> about)
      : limit_(std::move(limit)), rank_(rank), give_up_(std::move(give_up)), about_(std::move(about)) {
    watching_.start(look_every, [this] { watch(); });
  }
  Alarm(const Alarm&) = delete;

  class Held {
   public:
    explicit Held(Alarm& a, std::string what) : alarm_(a) { alarm_.set(Call{std::move(what), now()}); }
    ~Held() { alarm_.set({}); }
    Held(const Held&) = delete;

   private:
    Alarm& alarm_;
  };
  Held during(std::string what) { return Held(*this, std::move(what)); }

 private:
  struct Call {
    std::string what;
    double since = 0;
  };
  void set(std::optional<Call> call) {
    const std::lock_guard lock(mutex_);
    call_ = std::move(call);
  }
  void watch() {
    const std::lock_guard lock(mutex_);
    const WaitLimit limit = limit_();
    if (!call_ || limit.seconds == 0 || now() < call_->since + limit.seconds) return;
    give_up_(Error("watchdog", "rank {} has waited {:.3g} s for the others while {}{}", rank_, limit.seconds,
                   call_->what, about_())
                 .hint("is one of them stopped, or its machine? if it takes that long, raise {}", limit.key)
                 .as(Error::Kind::run));
  }

  static constexpr double look_every = 0.2;  // seconds
  std::function<WaitLimit()> limit_;
  int rank_;
  GiveUp give_up_;
  std::function<std::string()> about_;
  std::optional<Call> call_;
  std::mutex mutex_;
  Repeated watching_;  // the last: it ends before what it looks at
};

}  // namespace stretto
