// A device that computes nothing: its memory is addresses only, and a task takes the time that a cost model gives it.
// The runtime around it is the real one and does not know.
#include "stretto/runtime/devices.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "stretto/base/clock.h"
#include "stretto/comm/emulated_clock.h"
#include "stretto/runtime/inner/emulated_tasks.h"

namespace stretto {
namespace {

class EmulatedDevice : public Device {
 public:
  EmulatedDevice(const Program& p, ActorId actor, const Machine& machine, std::optional<Times> times)
      : code_(p.actors[actor].code), tasks_(p, actor, machine, times) {}
  ~EmulatedDevice() override {
    for (const auto& [p, bytes] : maps_) munmap(p, bytes);
  }

  std::byte* allocate(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
      throw Error("memory", "the system refuses {} bytes of address space", bytes).as(Error::Kind::run);
    maps_.push_back({p, bytes});
    return static_cast<std::byte*>(p);
  }
  KernelId prepare(const Call&) override { return KernelId(0); }
  std::string_view kernel_name(KernelId) const override { return "emulated"; }
  EventId event() override { return came_.push_back(0); }
  void time_kernels(bool) override {}

  // A task's whole time passes at its first kernel. If the system's timer wakes this thread late, that is not the
  // device's time.
  void launch(DeviceLane, KernelId, const Args& args) override {
    const InstructionId i(args.launch.instruction);
    if (passed_ == i) return;
    if (!passed_) make_up_for_delays();
    const Instruction at = code_[i];
    tasks_.pass(*task_of(at));
    passed_ = i;
  }
  void record(EventId e, DeviceLane) override { came_[e] = now(); }
  void wait(DeviceLane, EventId) override {}

  std::optional<KernelFault> finish() override {
    passed_.reset();
    tasks_.begin_step();
    return std::nullopt;
  }
  void write(std::byte*, const void*, std::size_t) override {}
  void read(void* to, const std::byte*, std::size_t bytes) const override { std::memset(to, 0, bytes); }
  void copy(std::byte*, const std::byte*, std::size_t) override {}
  double seconds(EventId e) const override { return came_[e]; }
  KernelSpent spent(KernelId) const override { return {}; }

 private:
  const Code& code_;
  EmulatedTasks tasks_;
  std::optional<InstructionId> passed_;  // the newest task of the step that has taken its time
  std::vector<std::pair<void*, std::size_t>> maps_;
  IdVector<EventId, double> came_;
};

std::unique_ptr<Device> make_emulated(const Program& p, int rank, const RunOptions& o) {
  return std::make_unique<EmulatedDevice>(p, p.actor_of_rank(rank), o.machine, o.times);
}

}  // namespace

extern const DeviceType emulated_device_type{.name = "emulated",
                                             .about = "takes the time of a machine and computes nothing",
                                             .make = make_emulated,
                                             .computes = false,
                                             .emulates = true};

}  // namespace stretto
