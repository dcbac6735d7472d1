// Ends the process when a call that only returns together with the other processes has not returned in time: nothing
// can be done about a thread that waits inside of MPI.
//
//   Alarm alarm(600, rank, [](const Error& e) { say(e); std::_Exit(3); }, [] { return std::string(); });
//   const auto held = alarm.during("MPI starts");       // until it goes out of scope
//   MPI_Init(...);
#pragma once
#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/threads.h"

namespace stretto {

class Alarm {
 public:
  using GiveUp = std::function<void(const Error&)>;
  // `about` is added to what is said: which of the others give no sign of life. seconds = 0: never.
  Alarm(double seconds, int rank, GiveUp give_up, std::function<std::string()> about)
      : seconds_(seconds), rank_(rank), give_up_(std::move(give_up)), about_(std::move(about)) {
    if (seconds_ > 0) watching_.start(std::min(1.0, seconds_ / 10), [this] { watch(); });
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
    if (!call_ || now() < call_->since + seconds_) return;
    give_up_(Error("watchdog", "rank {} has waited {:.3g} s for the others while {}{}", rank_, seconds_, call_->what,
                   about_())
                 .hint("is one of them stopped, or its machine? if it takes that long, raise parallel.timeout")
                 .as(Error::Kind::run));
  }

  double seconds_;
  int rank_;
  GiveUp give_up_;
  std::function<std::string()> about_;
  std::optional<Call> call_;
  std::mutex mutex_;
  Repeated watching_;  // the last: it ends before what it looks at
};

}  // namespace stretto
