// All ranks of a program, one thread each; a program for one rank runs on the caller's thread, and so does the one rank
// that is here when others are processes. Ranks are numbered as Program::rank_of says.
//
//   Engine engine(program, {.seed = 1});
//   engine.run(step);          // an error in one actor stops all and is rethrown here
#pragma once
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "stretto/base/threads.h"
#include "stretto/comm/transport.h"
#include "stretto/comm/wiring.h"
#include "stretto/runtime/worker.h"

namespace stretto {

class Engine {
 public:
  // `shared`: an engine whose parameters this one uses (evaluation); it has the same actors.
  Engine(std::shared_ptr<const Program>, WorkerOptions, const Engine* shared = nullptr);
  Engine(const Engine&) = delete;

  void run(i64 step);
  void record(bool on);  // from the next step on
  int ranks() const { return program_->ranks(); }
  const std::vector<int>& local() const { return local_; }  // the ranks that are here: only those have a worker
  bool here(int rank) const { return workers_[rank] != nullptr; }
  const std::shared_ptr<Peers>& peers() const { return peers_; }
  int actors() const { return int(program_->actors.size()); }
  Worker& worker(int rank) { return *workers_[rank]; }
  const Worker& worker(int rank) const { return *workers_[rank]; }
  const Worker& first(ActorId actor) const { return worker(program_->rank_of(actor, 0)); }  // coordinate 0
  const Program& program() const { return *program_; }
  bool computes() const { return worker(local_.front()).device().computes(); }  // there are numbers
  double seconds() const { return seconds_; }                                   // the last step took
  double bubble() const;  // share of the ranks' time in it without work

 private:
  void serve(int rank);
  void run_rank(int rank, i64 step);
  void stop() noexcept;
  void quit();
  void watch();
  std::string who_waits(const std::vector<double>& since) const;

  void connect_threads(const WorkerOptions&);
  void connect_processes(const WorkerOptions&);

  std::shared_ptr<const Program> program_;
  double timeout_ = 0;
  std::shared_ptr<Peers> peers_;
  std::vector<int> local_;
  std::vector<ArenaBases> arenas_;                      // per rank, when they are processes that share memory
  std::vector<std::unique_ptr<Transport>> transports_;  // per coordinate; none when there is one actor
  std::unique_ptr<Wiring> wires_;
  std::unique_ptr<Groups> groups_;
  std::vector<std::unique_ptr<Worker>> workers_;  // per rank; none for those in other processes
  std::vector<double> worked_;                    // per rank: seconds of the last step not spent waiting
  std::mutex mutex_;
  std::condition_variable changed_;
  u64 round_ = 0;    // steps started
  int running_ = 0;  // ranks that have not finished this one
  i64 step_ = 0;
  double seconds_ = 0;
  bool quit_ = false;
  std::exception_ptr failure_;  // the first; afterwards the engine is dead
  // Last: they end before anything that they use goes away, also when the constructor throws.
  Threads threads_{[this] { quit(); }}, watchdog_{[this] { quit(); }};
};

}  // namespace stretto
