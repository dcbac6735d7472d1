#include "stretto/runtime/engine.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <chrono>

#include "stretto/base/clock.h"
#include "stretto/comm/threads/thread_transport.h"

namespace stretto {
namespace {

// Cores this process may use.
std::vector<int> cores() {
  cpu_set_t set;
  std::vector<int> all;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) all.push_back(i);
  return all;
}

void pin(std::thread& t, int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(t.native_handle(), sizeof set, &set);  // refused: the thread runs where it may
}

}  // namespace

Engine::Engine(std::shared_ptr<const Program> program, WorkerOptions options, const Engine* shared)
    : program_(std::move(program)), timeout_(options.run.timeout) {
  const int actors = int(program_->actors.size()), each = program_->ranks_per_actor(), ranks = program_->ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    const int a = rank / each;
    WorkerOptions mine = options;
    if (shared) {
      STRETTO_ASSERT(program_->actors[std::size_t(a)].param_at == shared->worker(rank).program().param_at,
                     "parameters lie elsewhere");
      mine.shared[std::size_t(Arena::params)] = shared->worker(rank).arena(Arena::params);
    }
    workers_.push_back(std::make_unique<Worker>(program_, a, rank % each, mine));
  }
  worked_.assign(std::size_t(ranks), 0);
  if (ranks == 1) return;
  const std::vector<int> allowed = cores();
  const bool enough = int(allowed.size()) >= ranks;
  const bool emulated = options.run.device == DeviceKind::emulated;
  const int spins = enough && !emulated ? 500 : 0;  // with a core for everybody a short look costs less than sleeping
  if (each > 1)
    groups_ = std::make_unique<Groups>(*program_,
                                       ThreadGroupOptions{.link = options.run.link, .copy = !emulated, .spins = spins});
  for (int k = 0; k < each; ++k) {  // messages go between ranks of equal coordinates
    std::vector<ArenaBases> arenas;
    for (int a = 0; a < actors; ++a) arenas.push_back(worker(program_->rank_of(a, k)).arenas());
    if (actors > 1) {
      transports_.push_back(std::make_unique<ThreadTransport>(
          *program_, arenas, ThreadTransportOptions{.link = options.run.link, .copy = !emulated, .spins = spins}));
      if (options.run.wrap) transports_.back() = options.run.wrap(std::move(transports_.back()));
    }
    for (int a = 0; a < actors; ++a)
      worker(program_->rank_of(a, k)).connect(arenas, actors > 1 ? transports_.back().get() : nullptr, groups_.get());
  }
  for (int rank = 0; rank < ranks; ++rank) {
    threads_.emplace_back([this, rank] { serve(rank); });
    if (enough && options.run.pin && !emulated) pin(threads_.back(), allowed[std::size_t(rank)]);
  }
  if (timeout_ > 0) watchdog_ = std::thread([this] { watch(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  for (std::thread& t : threads_) t.join();
  if (watchdog_.joinable()) watchdog_.join();
}

void Engine::stop() noexcept {
  for (const auto& t : transports_) t->stop();
  if (groups_) groups_->stop();
}

void Engine::run_rank(int rank, i64 step) {
  const double start = now();
  try {
    worker(rank).run(step);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    stop();
  }
  worked_[std::size_t(rank)] = now() - start - worker(rank).waited();
}

void Engine::serve(int rank) {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // emulated times are slept: wake within a microsecond if the system can
  u64 seen = 0;
  while (true) {
    i64 step = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return quit_ || round_ > seen; });
      if (quit_) return;
      seen = round_;
      step = step_;
    }
    run_rank(rank, step);
    {
      const std::lock_guard lock(mutex_);
      --running_;
    }
    changed_.notify_all();
  }
}

void Engine::run(i64 step) {
  if (failure_) std::rethrow_exception(failure_);
  const double start = now();
  if (threads_.empty()) {
    run_rank(0, step);
  } else {
    std::unique_lock lock(mutex_);
    step_ = step;
    running_ = ranks();
    ++round_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return running_ == 0; });
  }
  seconds_ = now() - start;
  if (failure_) std::rethrow_exception(failure_);
}

void Engine::record(bool on) {
  for (const auto& w : workers_) w->record(on);
}

double Engine::bubble() const {
  double worked = 0;
  for (double w : worked_) worked += w;
  return seconds_ > 0 ? std::max(0.0, 1 - worked / (seconds_ * double(worked_.size()))) : 0;
}

// Stops the run when no rank has come any further for the whole timeout while at least one waits for others.
void Engine::watch() {
  std::vector<std::uint32_t> at(workers_.size(), 0);
  std::vector<double> since(workers_.size(), now());
  u64 seen = 0;
  std::unique_lock lock(mutex_);
  while (!quit_) {
    changed_.wait_for(lock, std::chrono::duration<double>(std::min(timeout_ / 10, 1.0)));
    bool stuck = running_ > 0 && !failure_, waiting = false;
    for (std::size_t a = 0; a < workers_.size(); ++a) {
      if (round_ != seen || workers_[a]->at() != at[a]) at[a] = workers_[a]->at(), since[a] = now();
      waiting = waiting || workers_[a]->waiting();
      stuck = stuck && now() - since[a] >= timeout_;
    }
    seen = round_;
    if (!stuck || !waiting) continue;
    failure_ = std::make_exception_ptr(
        Error("watchdog", "nothing has moved for {:.3g} s in step {}: {}", timeout_, step_, who_waits(since))
            .hint("if the work itself takes that long, raise parallel.timeout")
            .as(Error::Kind::run));
    stop();
  }
}

std::string Engine::who_waits(const std::vector<double>& since) const {
  std::string text;
  for (std::size_t a = 0; a < workers_.size(); ++a) {
    const Worker& w = *workers_[a];
    const auto& code = w.program().code;
    const std::uint32_t at = w.at();
    text += fmt::format("{}{} ", a ? "; " : "", w.str());
    if (at >= code.size())
      text += "has finished";
    else
      text += fmt::format("{} {} (instruction {} of {}) since {:.1f} s", w.waiting() ? "waits to" : "is in",
                          program_->str(code[at]), at, code.size(), now() - since[a]);
  }
  return text;
}

}  // namespace stretto
