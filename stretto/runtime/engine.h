// All ranks of a program, one thread each. A program for one rank runs on the caller's thread; so does this process's
// rank when the others are processes, and it runs all steps that were submitted before it waits for any of them. Ranks
// are numbered as Program::rank_of says.
//
//   Engine engine(program, {.seed = 1});
//   engine.run(step);          // an error in one actor stops all and is rethrown here
//
// A second step may be submitted while one is under way (most_under_way): a rank that has finished its part of the
// first goes on with it at once. What a step reads from the host, and what the host reads from it, is copied by the
// rank itself when it begins and ends the step, so that one copy of that memory is enough.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "stretto/base/threads.h"
#include "stretto/comm/transport.h"
#include "stretto/comm/wiring.h"
#include "stretto/runtime/worker.h"

namespace stretto {

struct StepHooks {
  std::function<bool(Worker&)> begin = {};  // by every rank here, on its thread; false, on all ranks: it is not run
  std::function<void(Worker&, double worked)> end = {};  // worked: seconds not spent waiting
};
struct StepTaken {
  double seconds = 0;                   // since it was submitted, or since the step before it ended
  double ended = 0;                     // when, by the steady clock
  std::span<const double> worked = {};  // per rank, of those here: seconds not spent waiting; until the next submit()
};

class Engine {
 public:
  // `shared`: an engine whose parameters this one uses (evaluation); it has the same actors.
  Engine(std::shared_ptr<const Program>, WorkerOptions, const Engine* shared = nullptr);
  Engine(const Engine&) = delete;

  void submit(i64 step, StepHooks = {});
  StepTaken wait();  // for the oldest that is under way
  StepTaken run(i64 step, StepHooks = {});
  int under_way() const { return int(submitted_ - waited_); }
  int most_under_way() const { return most_under_way_; }
  void record(bool on);  // from the next step on; nothing is under way
  int ranks() const { return program_->ranks(); }
  const std::vector<int>& local() const { return local_; }  // the ranks of this process: only those have a worker
  bool here(int rank) const { return workers_[rank] != nullptr; }
  // Is the memory of frozen parameters its own? Of all that read one copy, one rank is to fill it.
  bool keeps_frozen(int rank) const;
  const std::shared_ptr<Peers>& peers() const { return peers_; }
  int actors() const { return int(program_->actors.size()); }
  Worker& worker(int rank) { return *workers_[rank]; }
  const Worker& worker(int rank) const { return *workers_[rank]; }
  const Worker& first(ActorId actor) const { return worker(program_->rank_of(actor, 0)); }  // coordinate 0
  const Program& program() const { return *program_; }
  bool computes() const { return computes_; }  // false: time passes, and there are no numbers

 private:
  struct Submitted {
    i64 step = 0;
    StepHooks hooks;
    int running = 0;             // ranks that have not finished it
    bool broken = false;         // not by all of them to its end
    double start = 0, end = 0;   // seconds of the steady clock
    std::vector<double> worked;  // per rank: seconds not spent waiting
  };
  Submitted& submitted(u64 round) { return steps_[round % 2]; }
  const Submitted& oldest_running() const { return steps_[((threads_.empty() ? ran_ : waited_) + 1) % 2]; }
  bool idle() const { return steps_[0].running + steps_[1].running == 0; }
  void serve(int rank);
  void run_rank(int rank, Submitted&);
  void run_here();
  void stop() noexcept;
  void quit();
  void watch();
  std::string who_waits(const std::vector<double>& since) const;

  void connect_threads(const WorkerOptions&);
  void connect_processes(const WorkerOptions&);
  void let_go_ahead();

  std::shared_ptr<const Program> program_;
  bool computes_ = true, one_memory_ = true;
  double timeout_ = 0;
  std::shared_ptr<Peers> peers_;
  std::vector<int> local_;
  std::vector<ArenaBases> arenas_;                      // per rank, when they are processes that share memory
  std::vector<std::unique_ptr<Transport>> transports_;  // per coordinate; none when there is one actor
  std::unique_ptr<Wiring> wires_;
  std::unique_ptr<Groups> groups_;
  std::unique_ptr<Milestones> milestones_;        // outlives the workers, whose lanes use it to the last
  std::vector<std::unique_ptr<Worker>> workers_;  // per rank; none for those in other processes
  std::unique_ptr<Ahead> ahead_;                  // none: messages keep steps apart, or there is one at a time
  int most_under_way_ = 1;
  std::mutex mutex_;
  std::condition_variable changed_;
  Submitted steps_[2];
  u64 submitted_ = 0, waited_ = 0, ran_ = 0;  // steps; ran: without threads
  double ended_ = 0;                          // when the last one that was waited for did
  bool quit_ = false;
  std::exception_ptr failure_;  // the first; afterwards the engine is dead
  // Last: they end before anything that they use goes away, even when the constructor throws.
  Threads threads_{[this] { quit(); }}, watchdog_{[this] { quit(); }};
};

}  // namespace stretto
