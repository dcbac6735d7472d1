// One rank: executes its actor's instruction list in order, on its own arenas.
//
//   Worker w(program, 0, 0, {.seed = 1});
//   w.connect(arenas_of_all, transport, groups);      // when there are several ranks
//   w.run(step);
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "stretto/comm/transport.h"
#include "stretto/kernels/device.h"
#include "stretto/program/program.h"
#include "stretto/runtime/groups.h"
#include "stretto/runtime/options.h"

namespace stretto {

struct KernelTime {  // time spent in one kernel call of one task, over all its runs
  std::string op, kernel;
  Part part = Part::F;
  std::string shape;
  double seconds = 0;
  i64 runs = 0;
};

struct WorkerOptions {
  u64 seed = 0;
  RunOptions run = {};
  ArenaBases shared{};  // arenas to use instead of new ones (evaluation shares parameters)
};

// What one run did, or a collective from its start to its end, when a step is recorded. Seconds of the steady clock.
struct RunRecord {
  std::uint32_t instruction = 0;
  double start = 0, end = 0;
  double waited = 0;            // for messages, right before it
  std::uint32_t message = ~0u;  // the transfer it waited for longest
};

class Worker {
 public:
  // `coordinate`: which rank of the actor, in the mesh's order.
  Worker(std::shared_ptr<const Program>, int actor, int coordinate, WorkerOptions);
  // Arenas of the ranks with the same coordinate, per actor.
  void connect(std::span<const ArenaBases> arenas_of_all, Transport*, Groups*);

  void run(i64 step);
  std::byte* arena(Arena a) const { return arenas_[std::size_t(a)]; }
  const ArenaBases& arenas() const { return arenas_; }
  const ActorProgram& program() const { return program_->actors[std::size_t(actor_)]; }
  int actor() const { return actor_; }
  const Coordinates& coordinates() const { return coordinates_; }
  std::string str() const;  // "actor 1", with several ranks "actor 1, data=0 tensor=1"
  std::vector<KernelTime> profile() const;

  void record(bool on);  // from the next step on; room for the records is made here
  const std::vector<RunRecord>& records() const { return records_; }
  double waited() const { return waited_; }  // seconds of the last step spent waiting for messages

  // For the watchdog: how far it is, and whether it waits there.
  std::uint32_t at() const { return at_.load(std::memory_order_relaxed); }
  bool waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  struct PreparedRef {
    std::optional<BufferId> buffer;  // none: a result that nobody reads
    i64 start;
  };
  struct PreparedCall {
    std::uint32_t call = 0, in = 0, out = 0;  // first ref of each
    std::uint16_t inputs = 0, outputs = 0;
    std::optional<KeyId> key;
    int collective = -1;  // into shapes_
    NodeId node;
    double seconds = 0;
    i64 runs = 0;
  };
  struct PreparedBody {
    std::shared_ptr<const Calls> calls;
    std::vector<PreparedCall> prepared;
    std::vector<PreparedRef> refs;
  };
  void prepare();
  void execute(const Run&, i64 step);
  void collect(const PreparedCall&, const std::byte* in, std::byte* out);
  void start_sum(std::uint32_t bucket, std::uint32_t instruction);
  void await_sum(std::uint32_t bucket);
  void start(const Start&, std::uint32_t instruction);
  void await(std::uint32_t number);
  double wait_for(const Groups::Place&, u64 ticket);
  void help_along();
  void poll();
  std::uint32_t begin_record(std::uint32_t instruction);
  void end_record(std::uint32_t record);
  void emulate(const Run&);
  void come_to(std::uint32_t instruction);
  void receive(std::uint32_t transfer);
  void jitter();
  bool gated(const Run&) const;
  std::string where(const Run&, i64 step) const;

  std::shared_ptr<const Program> program_;
  int actor_, coordinate_;
  Coordinates coordinates_;
  WorkerOptions options_;
  std::unique_ptr<Device> device_;
  ArenaBases arenas_{};
  Transport* transport_ = nullptr;
  std::vector<std::byte*> addresses_;  // of program().slots
  std::vector<PreparedBody> bodies_;
  struct Collective {
    Groups::Place at;
    std::uint32_t prepared = 0;
  };
  std::vector<CollectiveShape> shapes_;
  std::vector<Groups::Lane> lanes_;      // as shapes_
  std::vector<Collective> collectives_;  // as shapes_
  struct Sum {                           // per bucket of the program
    Collective what;
    std::byte* memory = nullptr;
    u64 ticket = 0;
    bool under_way = false;
    std::uint32_t record = 0;
  };
  std::vector<Sum> sums_;
  int sums_under_way_ = 0;
  struct Started {  // per number of the actor's program
    struct Part {
      const Collective* what = nullptr;
      u64 ticket = 0;
      bool complete = false;
    };
    std::vector<Part> parts;
    std::uint32_t record = 0;
    bool recorded = false;  // its end is known
  };
  std::vector<Started> started_;
  std::vector<std::uint32_t> under_way_;  // numbers
  std::vector<std::uint32_t> body_of_;    // task -> body
  std::vector<double> task_seconds_;      // emulated devices
  std::uint32_t round_ = 0;
  double polled_ = 0;
  u64 jitter_state_ = 0;
  std::vector<std::uint16_t> emulated_;  // with times per phase: which parts of each action have taken theirs
  bool recording_ = false;
  std::vector<RunRecord> records_;
  double waited_ = 0, waited_now_ = 0;
  std::uint32_t waited_for_ = ~0u;
  std::atomic<std::uint32_t> at_{0};
  std::atomic<bool> waiting_{false};
};

}  // namespace stretto
