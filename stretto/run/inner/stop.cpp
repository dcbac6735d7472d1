#include "stretto/run/inner/stop.h"

namespace stretto {
namespace {

volatile std::sig_atomic_t asked_to_stop = 0;

void ask(int signal) {
  if (asked_to_stop != 0) {  // the second one, of either kind
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  asked_to_stop = 1;
}

}  // namespace

StopSignals::StopSignals() {
  asked_to_stop = 0;
  struct sigaction action {};
  action.sa_handler = ask;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

bool StopSignals::asked() const { return asked_to_stop != 0; }

}  // namespace stretto
