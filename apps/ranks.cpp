#include "ranks.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "failure.h"
#include "stretto/base/error.h"
#include "stretto/launch/note.h"

namespace stretto::app {
namespace {

// Long enough for the first rank to speak, and to end the others; for every rank's watchdog to speak.
constexpr double kOthersFirst = 2, kOthersToo = 1.5;

void pause_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

void Ranks::run(const std::function<void()>& work) {
  if (world_.size == 1) return work();
  try {
    work();
    peers_.reset();
  } catch (...) {
    fail();
  }
}

std::shared_ptr<Peers> Ranks::join(PeersOptions options) {
  if (world_.size == 1) return nullptr;
  options.world = world_;
  peers_ = mpi_peers(options);
  return peers_;
}

void Ranks::fail() {
  const Failure f = failure_of(std::current_exception());
  const int rank = peers_ ? peers_->rank() : world_.rank;
  if (f.code < int(Error::Kind::run) && rank > 0) pause_for(kOthersFirst);
  std::fflush(stdout);
  if (const char* note = std::getenv(code_variable)) std::ofstream(note) << f.code << "\n";
  std::fprintf(stderr, "rank %d: %s\n", rank, f.text.c_str());
  std::fflush(stderr);
  if (f.text.starts_with("[watchdog]")) pause_for(kOthersToo);
  if (peers_) peers_->abort(f.code);
  std::_Exit(f.code);
}

}  // namespace stretto::app
