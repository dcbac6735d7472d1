#include "ranks.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "stretto/base/error.h"
#include "stretto/launch/last_word.h"

namespace stretto::app {
namespace {

// Long enough for the first rank to speak, and to end the others; for every rank's watchdog to speak.
constexpr double others_first = 2, others_too = 1.5;

void pause_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

Timeouts timeouts_of(const RunConfig& c) {
  return {.start = c.parallel.start_timeout, .step = c.parallel.timeout, .saving = c.checkpoint.timeout};
}

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
  options.give_up = [this](const Error& e) { end(failure_of(e), true); };
  peers_ = mpi_peers(options);
  return peers_;
}

void Ranks::fail() { end(failure_of(std::current_exception()), false); }

void Ranks::end(const Failure& f, bool within_mpi) {
  const int rank = peers_ ? peers_->rank() : world_.rank;
  if (f.code < int(Error::Kind::run) && rank > 0) pause_for(others_first);
  std::fflush(stdout);
  const std::string text = fmt::format("rank {}: {}", rank, f.text);
  say_last_word(f.code, text);
  std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
  if (f.where == "watchdog") pause_for(others_too);
  if (peers_ && !within_mpi) peers_->abort(f.code);
  std::_Exit(f.code);
}

}  // namespace stretto::app
