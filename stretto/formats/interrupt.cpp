#include "stretto/formats/interrupt.h"

#include <atomic>
#include <cstdlib>
#include <iterator>

namespace stretto {
namespace {

std::atomic<int> unfinished_count{0}, noted_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal's handler reads them");

void note(int signal) {
  if (unfinished_count.load() > 0 && noted_signal.exchange(signal) == 0) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void Interrupted::end() const {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  std::_Exit(128 + signal);
}

InterruptGuard::InterruptGuard() {
  noted_signal = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    sigaction(signals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, nullptr);  // nohup stays what it is
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &before_[i], nullptr);
  noted_signal = 0;
}

Unfinished::Unfinished() { ++unfinished_count; }
Unfinished::~Unfinished() { --unfinished_count; }

void end_if_interrupted() {
  if (const int signal = noted_signal.load(); signal != 0) throw Interrupted{signal};
}

}  // namespace stretto
