#include "stretto/train/stop.h"

namespace stretto {
namespace {

volatile std::sig_atomic_t asked_to_stop = 0;

void ask(int) { asked_to_stop = 1; }

}  // namespace

StopSignals::StopSignals() {
  asked_to_stop = 0;
  struct sigaction action {};
  action.sa_handler = ask;
  action.sa_flags = int(SA_RESETHAND) | SA_RESTART;  // the second one finds the system's own handler
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

bool StopSignals::asked() const { return asked_to_stop != 0; }

}  // namespace stretto
