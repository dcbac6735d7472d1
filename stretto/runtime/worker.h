// One rank: executes its actor's instruction list in order, on its own arenas.
//
//   Worker w(program, 0, {.seed = 1});
//   w.run(step);
#pragma once
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "stretto/comm/transport.h"
#include "stretto/kernels/device.h"
#include "stretto/program/program.h"

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
  bool profile = false;            // time every kernel call
  Transport* transport = nullptr;  // needed when there are several actors
  ArenaBases shared{};             // arenas to use instead of new ones (evaluation shares parameters)
};

class Worker {
 public:
  Worker(std::shared_ptr<const Program>, int actor, WorkerOptions);

  void run(i64 step);
  std::byte* arena(Arena a) const { return arenas_[std::size_t(a)]; }
  const ActorProgram& program() const { return program_->actors[std::size_t(actor_)]; }
  std::vector<KernelTime> profile() const;

 private:
  struct PreparedRef {
    std::uint32_t buffer;
    i64 start;
  };
  struct PreparedCall {
    std::uint32_t call = 0, in = 0, out = 0;  // first ref of each
    std::uint16_t inputs = 0, outputs = 0;
    int key = -1;
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

  std::shared_ptr<const Program> program_;
  int actor_;
  WorkerOptions options_;
  std::unique_ptr<Device> device_;
  ArenaBases arenas_{};
  std::vector<std::byte*> addresses_;  // of program().slots
  std::vector<PreparedBody> bodies_;
  std::vector<std::uint32_t> body_of_;  // task -> body
};

}  // namespace stretto
