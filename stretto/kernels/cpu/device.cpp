#include "stretto/kernels/device.h"

#include <cstring>
#include <utility>

#include "stretto/kernels/cpu/host_arenas.h"
#include "stretto/kernels/cpu/kernel_set.h"
#include "stretto/kernels/processor.h"

namespace stretto {
namespace {

// The thread that calls, with those that share its kernels, is every lane: a launch is done when the call returns, and
// nobody has to wait.
class CpuDevice : public Device {
 public:
  explicit CpuDevice(TeamOptions o) : kernels_(o) {}
  std::byte* allocate(std::size_t bytes) override { return arenas_.allocate(bytes); }
  KernelId prepare(const Call& call) override { return kernels_.prepare(call); }
  std::string_view kernel_name(KernelId k) const override { return kernels_.name(k); }
  EventId event() override { return came_.push_back(0); }
  void time_kernels(bool on) override { kernels_.time(on); }

  void launch(DeviceLane, KernelId k, const Args& args) override {
    Args mine = args;
    mine.fault = &fault_;
    kernels_.run(k, mine);
  }
  void record(EventId e, DeviceLane) override { came_[e] = now(); }
  void wait(DeviceLane, EventId) override {}

  std::optional<KernelFault> finish() override { return std::exchange(fault_, std::nullopt); }
  void write(std::byte* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void read(void* to, const std::byte* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  double seconds(EventId e) const override { return came_[e]; }
  KernelSpent spent(KernelId k) const override { return kernels_.spent(k); }

 private:
  KernelSet kernels_;
  HostArenas arenas_;
  IdVector<EventId, double> came_;
  std::optional<KernelFault> fault_;
};

}  // namespace

std::unique_ptr<Device> cpu_device(TeamOptions o) {
  check_kernels_run_here();
  return std::make_unique<CpuDevice>(o);
}

}  // namespace stretto
