// One rank: executes its actor's instruction list in order, on its own arenas.
//
//   Worker w(program, ActorId(0), 0, {.seed = 1});
//   w.connect(arenas_of_all, transport, groups);      // when there are several ranks
//   w.run(step);
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "stretto/base/enum_array.h"
#include "stretto/comm/transport.h"
#include "stretto/kernels/device.h"
#include "stretto/program/lanes.h"
#include "stretto/program/program.h"
#include "stretto/runtime/ahead.h"
#include "stretto/runtime/groups.h"
#include "stretto/runtime/in_flight.h"
#include "stretto/runtime/options.h"
#include "stretto/runtime/prepared.h"
#include "stretto/runtime/profile.h"
#include "stretto/runtime/records.h"

namespace stretto {

struct WorkerOptions {
  u64 seed = 0;
  RunOptions run = {};
  ArenaBases shared{};  // arenas to use instead of new ones (evaluation shares parameters)
  bool ahead = false;   // ranks may go on with the next step while others are in this one
};

class Worker {
 public:
  // `coordinate`: which rank of the actor, in the mesh's order.
  Worker(std::shared_ptr<const Program>, ActorId, int coordinate, WorkerOptions);
  // Arenas of the ranks with the same coordinate, per actor.
  void connect(std::span<const ArenaBases> arenas_of_all, Transport*, Groups*);
  void go_ahead(Ahead* ahead) { ahead_ = ahead; }  // it may begin a step while others are in the one before

  void run(i64 step);
  // How the host reads and writes its memory, between steps.
  void write(Arena a, u64 at, const void* from, std::size_t bytes) { device_->write(arenas_[a] + at, from, bytes); }
  void read(Arena a, u64 at, void* to, std::size_t bytes) const { device_->read(to, arenas_[a] + at, bytes); }
  // Copies parameters and state to one of two places (Arena::kept), and back.
  void keep(int place);
  void put_back(int place);
  const Device& device() const { return *device_; }
  Device& device() { return *device_; }
  const ArenaBases& arenas() const { return arenas_; }
  const ActorProgram& program() const { return program_->actors[actor_]; }
  ActorId actor() const { return actor_; }
  int rank() const { return program_->rank_of(actor_, coordinate_); }
  const Coordinates& coordinates() const { return coordinates_; }
  std::string str() const;  // "actor 1", with several ranks "actor 1, data=0 tensor=1"
  std::vector<KernelTime> profile() const { return kernel_times(*program_->step, prepared_, *device_); }

  void record(bool on);  // from the next step on; room for the records is made here
  const std::vector<RunRecord>& records() const { return records_.list(); }
  double waited() const { return records_.waited(); }  // seconds of the last step spent waiting for messages

  // For the watchdog: how far it is, and whether it waits there.
  InstructionId at() const;
  bool waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  // The instructions.
  void run(const Run&, InstructionId);
  void send(TransferId);
  void receive(TransferId);
  void start(const Start&, InstructionId);
  void await(const Await&);

  void execute(const Run&, InstructionId);
  template <class Work>
  void naming(const Run&, CallId, Work);
  void finish(InstructionId end);
  std::optional<KernelFault> finish_device();
  InFlight::Ticket start_call(const PreparedCall&, std::byte* const* base, DeviceLane);
  double wait_for(const InFlight::Ticket&);

  void begin(i64 step);
  void come_to(InstructionId);
  void leave(InstructionId);
  void tell_transport(InstructionId);          // the transport may have to wait here
  void keep_apart(InstructionId, DeviceLane);  // from other ranks' step before
  void find_groups(Groups&);
  void settle_waits();
  template <class Wait>
  double waiting(Wait);  // seconds that it took; meanwhile the watchdog knows
  void help_along();
  void poll();
  void jitter();
  std::string where(const Run&) const;
  Error refused(const KernelFault&) const;

  std::shared_ptr<const Program> program_;
  ActorId actor_;
  int coordinate_;
  Coordinates coordinates_;
  WorkerOptions options_;
  std::unique_ptr<Device> device_;
  ArenaBases arenas_{};
  PreparedProgram prepared_;
  Transport* transport_ = nullptr;
  Ahead* ahead_ = nullptr;
  IdVector<SlotId, std::byte*> addresses_;
  struct Shared {
    Groups::Membership at;
    std::uint32_t prepared = 0;
  };
  IdVector<SharedCallId, EnumArray<DeviceLane, std::optional<Shared>, lane_count>> shared_;
  Lanes lanes_;
  // Where calls do not wait: the step's beginning, and the end of every instruction in its lane.
  EventId begun_;
  IdVector<InstructionId, EventId> ended_;
  InFlight in_flight_;

  i64 step_ = 0;
  std::uint32_t round_ = 0;
  bool polls_ = false;  // something may be under way while a kernel runs
  double polled_ = 0;
  u64 jitter_state_ = 0;
  Records records_;
  std::atomic<std::uint32_t> at_{0};
  std::atomic<bool> waiting_{false};
  mutable std::atomic<std::uint32_t> seen_{0};  // where calls do not wait: the newest instruction that at() has seen
};

}  // namespace stretto
