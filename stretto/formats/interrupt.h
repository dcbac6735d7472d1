// Ctrl-C (or SIGTERM, SIGHUP) while files are being written: what is unfinished is removed before the process ends.
//
//   const InterruptGuard guard;              // in a command that only writes files
//   try { write_them(); } catch (const Interrupted& i) { i.end(); }
//
// While an AtomicFile or AtomicDirectory is unfinished, a signal is only noted, and the next write throws Interrupted;
// destructors remove what was begun. At other times, and the second time, the signal ends the process at once.
#pragma once
#include <csignal>

namespace stretto {

struct Interrupted {
  int signal = 0;
  [[noreturn]] void end() const;  // as the signal itself would have ended the process
};

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();  // puts back what was there before
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3]{};
};

// One of these is a member of everything that must not be left behind.
class Unfinished {
 public:
  Unfinished();
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
};
void end_if_interrupted();  // throws Interrupted

}  // namespace stretto
