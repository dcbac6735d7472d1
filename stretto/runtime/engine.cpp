#include "stretto/runtime/engine.h"

#include <sys/prctl.h>

#include <chrono>

#include "stretto/base/clock.h"
#include "stretto/kernels/cpu/products.h"
#include "stretto/program/frozen.h"
#include "stretto/runtime/devices.h"

namespace stretto {
namespace {

// Of a rank that is a thread here: as many as it has threads, which no other rank uses. None: there are too few.
std::vector<int> cores_of(const Program& p, int rank, const RunOptions& o) {
  const std::vector<int> all = usable_cores();
  const std::size_t first = std::size_t(rank) * p.threads;
  if (!o.pin || !computes(o.device) || o.peers || p.ranks() == 1 || !enough_cores(p, o)) return {};
  return {all.begin() + first, all.begin() + first + p.threads};
}

// Emulated links go around the real ones.
std::unique_ptr<Wiring> wired(std::unique_ptr<Wiring> real, const RunOptions& o) {
  const bool content = computes(o.device);
  if (content && !o.link && !o.cluster) return real;
  return emulated_wiring(std::move(real),
                         {.links = o.cluster.value_or(equal_links(o.link.value_or(Link{}))), .content = content});
}

}  // namespace

Engine::Engine(std::shared_ptr<const Program> program, WorkerOptions options, const Engine* shared)
    : program_(std::move(program)), timeout_(options.run.timeout), peers_(options.run.peers) {
  const int each = program_->ranks_per_actor(), ranks = program_->ranks();
  options.run = on_device(std::move(options.run));
  computes_ = stretto::computes(options.run.device), one_memory_ = type_of(options.run.device).one_memory;
  if (peers_) {
    STRETTO_ASSERT(peers_->size() == ranks, "one process per rank");
    local_ = {peers_->rank()};
  }
  for (int rank = 0; !peers_ && rank < ranks; ++rank) local_.push_back(rank);
  workers_.resize(ranks);
  if (computes_) reserve_products(int(local_.size()) * program_->threads);
  ArenaBases own{};
  if (peers_ && computes_) {
    if (peers_->shares_memory())
      arenas_ = peers_->share(*program_, shared == nullptr);
    else
      own = peers_->arenas(*program_, shared == nullptr);
  }
  for (const int rank : local_) {
    const ActorId a = program_->actor_of_rank(rank);
    WorkerOptions mine = options;
    if (peers_) mine.shared = arenas_.empty() ? own : arenas_[rank];
    if (!peers_ && !keeps_frozen(rank))  // a smaller one, which is there
      mine.shared[Arena::frozen] = worker(keeper(*program_, rank)).arenas()[Arena::frozen];
    if (shared) {
      const ActorProgram &here = program_->actors[a], &there = shared->worker(rank).program();
      STRETTO_ASSERT(here.param_at == there.param_at && here.frozen_at == there.frozen_at, "parameters lie elsewhere");
      for (const Arena k : {Arena::params, Arena::frozen}) mine.shared[k] = shared->worker(rank).arenas()[k];
    }
    const OnCores here(cores_of(*program_, rank, mine.run));
    workers_[rank] = std::make_unique<Worker>(program_, a, rank % each, mine);
  }
  for (Submitted& s : steps_) s.worked.assign(ranks, 0);
  if (ranks == 1) return;
  if (peers_)
    connect_processes(options);
  else
    connect_threads(options);
  if (timeout_ > 0) watchdog_.start([this] { watch(); });
}

bool Engine::keeps_frozen(int rank) const {
  if (!peers_) return !one_memory_ || keeper(*program_, rank) == rank;
  return !peers_->reaches_memory() || keeper(*program_, rank, peers_->nodes()) == rank;
}

void Engine::connect_threads(const WorkerOptions& options) {
  const int each = program_->ranks_per_actor(), ranks = program_->ranks();
  // When every rank has a core, looking for a short while costs less than sleeping.
  std::vector<Device*> devices;
  std::vector<ArenaBases> all;
  for (const int rank : local_) devices.push_back(&worker(rank).device()), all.push_back(worker(rank).arenas());
  wires_ = wired(wiring_of(*program_, devices, all, enough_cores(*program_, options.run) ? 500 : 0), options.run);
  if (each > 1) groups_ = std::make_unique<Groups>(*program_, *wires_);
  for (int k = 0; k < each; ++k) {  // messages go between ranks of equal coordinates
    std::vector<ArenaBases> arenas;
    for (ActorId a : program_->actors.ids()) arenas.push_back(worker(program_->rank_of(a, k)).arenas());
    if (actors() > 1) {
      transports_.push_back(wires_->transport(*program_, arenas, k));
      if (options.run.wrap) transports_.back() = options.run.wrap(std::move(transports_.back()));
    }
    for (ActorId a : program_->actors.ids())
      worker(program_->rank_of(a, k)).connect(arenas, actors() > 1 ? transports_.back().get() : nullptr, groups_.get());
  }
  if (options.ahead) let_go_ahead();
  for (int rank = 0; rank < ranks; ++rank) {
    const OnCores here(cores_of(*program_, rank, options.run));
    threads_.start([this, rank] { serve(rank); }, local_.size());
  }
}

void Engine::let_go_ahead() {
  most_under_way_ = 2;
  milestones_ = wires_->milestones(ranks());
  if (milestones_) ahead_ = std::make_unique<Ahead>(*program_, *milestones_);
  for (const int rank : local_) worker(rank).go_ahead(ahead_.get());
}

void Engine::connect_processes(const WorkerOptions& options) {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // as in serve()
  Worker& w = worker(local_.front());
  wires_ = wired(process_wiring(*peers_), options.run);
  const int coordinate = local_.front() % program_->ranks_per_actor();
  std::vector<ArenaBases> column;  // of the ranks that messages are exchanged with, per actor; null: out of reach
  for (ActorId a : program_->actors.ids())
    column.push_back(arenas_.empty() ? ArenaBases{} : arenas_[program_->rank_of(a, coordinate)]);
  if (arenas_.empty()) arenas_.push_back(w.arenas());
  if (actors() > 1) transports_.push_back(wires_->transport(*program_, arenas_, coordinate));
  if (program_->ranks_per_actor() > 1) groups_ = std::make_unique<Groups>(*program_, *wires_);
  w.connect(column, transports_.empty() ? nullptr : transports_.back().get(), groups_.get());
  let_go_ahead();  // nothing else keeps their steps apart
  if (!options.ahead) most_under_way_ = 1;
}

void Engine::quit() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    if (!idle()) stop();  // nobody waits for it any more: ranks that have not begun the step do not begin it
  }
  changed_.notify_all();
}

void Engine::stop() noexcept {
  for (const auto& t : transports_) t->stop();
  if (groups_) groups_->stop();
  if (milestones_) milestones_->stop();
}

void Engine::run_rank(int rank, Submitted& s) {
  const double start = now();
  Worker& w = worker(rank);
  try {
    if (!s.hooks.begin || s.hooks.begin(w)) {
      w.run(s.step);
      s.worked[rank] = now() - start - w.waited();
      if (s.hooks.end) s.hooks.end(w, s.worked[rank]);
    } else {
      s.worked[rank] = 0;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    s.broken = true;
    stop();
  }
}

// On the caller's thread: runs all that was submitted, so that no other process waits for this one to go on.
void Engine::run_here() {
  std::unique_lock lock(mutex_);
  while (ran_ < submitted_) {
    Submitted& s = submitted(ran_ + 1);
    if (!failure_) {
      lock.unlock();
      run_rank(local_.front(), s);
      lock.lock();
    } else {
      s.broken = true;
    }
    s.running = 0;
    s.end = now();
    ++ran_;
  }
}

void Engine::serve(int rank) {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // emulated times are slept: wake within a microsecond if the system can
  for (u64 round = 1;; ++round) {
    bool failed = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return quit_ || submitted_ >= round; });
      if (quit_) return;
      failed = failure_ != nullptr;
    }
    Submitted& s = submitted(round);
    if (!failed) run_rank(rank, s);
    const std::lock_guard lock(mutex_);
    s.broken = s.broken || failed;
    if (--s.running == 0) s.end = now();
    if (s.running == 0 || failure_) changed_.notify_all();
  }
}

void Engine::submit(i64 step, StepHooks hooks) {
  STRETTO_ASSERT(under_way() < most_under_way(), "as many steps as possible are under way");
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  Submitted& s = submitted(submitted_ + 1);
  s.step = step;
  s.hooks = std::move(hooks);
  s.running = static_cast<int>(local_.size());
  s.broken = false;
  s.start = now();
  ++submitted_;
  changed_.notify_all();
}

StepTaken Engine::wait() {
  STRETTO_ASSERT(under_way() > 0, "no step is under way");
  Submitted& s = submitted(waited_ + 1);
  if (threads_.empty()) run_here();
  std::unique_lock lock(mutex_);
  const auto done = [&] { return s.running == 0 && !s.broken; };  // whatever became of the one after it
  changed_.wait(lock, [&] { return done() || (failure_ && idle()); });
  if (!done()) {
    waited_ = submitted_;
    std::rethrow_exception(failure_);
  }
  ++waited_;
  s.hooks = {};
  const StepTaken taken{
      .seconds = s.end - std::max(s.start, std::exchange(ended_, s.end)), .ended = s.end, .worked = s.worked};
  return taken;
}

StepTaken Engine::run(i64 step, StepHooks hooks) {
  submit(step, std::move(hooks));
  return wait();
}

void Engine::record(bool on) {
  for (const int rank : local_) worker(rank).record(on);
}

// Stops the run when no rank has come any further for the whole timeout while at least one waits for others.
void Engine::watch() {
  std::vector<InstructionId> at(workers_.size(), InstructionId(0));
  std::vector<double> since(workers_.size(), now());
  u64 seen = 0;
  std::unique_lock lock(mutex_);
  while (!quit_) {
    changed_.wait_for(lock, std::chrono::duration<double>(std::min(timeout_ / 10, 1.0)));
    bool stuck = !idle() && !failure_, waiting = false;
    for (const int rank : local_) {
      const Worker& w = worker(rank);
      if (submitted_ != seen || w.at() != at[rank]) at[rank] = w.at(), since[rank] = now();
      waiting = waiting || w.waiting();
      stuck = stuck && now() - since[rank] >= timeout_;
      if (peers_) peers_->beat(oldest_running().step, w.at().value, w.waiting());
    }
    seen = submitted_;
    if (!stuck || !waiting) continue;
    failure_ = std::make_exception_ptr(Error("watchdog", "nothing has moved for {:.3g} s in step {}: {}", timeout_,
                                             oldest_running().step, who_waits(since))
                                           .hint("if the work itself takes that long, raise parallel.timeout")
                                           .as(Error::Kind::run));
    stop();
  }
}

std::string Engine::who_waits(const std::vector<double>& since) const {
  std::string text;
  const auto say = [&](int rank, std::string_view who, InstructionId at, bool waiting) {
    const auto& code = program_->actors[program_->actor_of_rank(rank)].code;
    text += fmt::format("{}{} ", text.empty() ? "" : "; ", who);
    if (!code.has(at))
      text += "has finished";
    else
      text += fmt::format("{} {} (instruction {} of {})", waiting ? "waits to" : "is in", program_->str(code[at]),
                          at.value, code.size());
  };
  for (int rank = 0; rank < ranks(); ++rank) {
    if (const Worker* w = workers_[rank].get()) {
      say(rank, w->str(), w->at(), w->waiting());
      if (w->program().code.has(w->at())) text += fmt::format(" since {:.1f} s", now() - since[rank]);
    } else if (const std::optional<Pulse> p = peers_->pulse(rank)) {
      if (p->silent < 1)
        say(rank, fmt::format("rank {}", rank), InstructionId(p->at), p->waiting);
      else
        text += fmt::format("{}rank {} (process {}) has given no sign of life for {:.1f} s", text.empty() ? "" : "; ",
                            rank, p->pid, p->silent);
    }
  }
  return text;
}

}  // namespace stretto
