// A device: memory, prepared kernels, and lanes in which launches run in order. On the CPU every lane is the thread
// that calls; on other devices a call returns at once, work follows in its lane, and lanes wait for each other where an
// event says so.
//
//   auto device = cpu_device();
//   std::byte* arena = device->allocate(1 << 20);
//   const KernelId kernel = device->prepare(kernel_call);                                 // before step 0
//   const EventId made = device->event();
//   device->launch(DeviceLane::compute, kernel, {.in = in, .out = out, .scratch = scratch, .now = now});
//   device->record(made, DeviceLane::compute);
//   device->wait(DeviceLane::messages, made);
//   device->finish();                                                                     // the step ends
//   device->read(&number, arena, sizeof number);
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "stretto/ir/lane.h"
#include "stretto/kernels/kernel.h"
#include "stretto/kernels/team.h"

namespace stretto {

using KernelId = Id<struct KernelTag>;  // prepared, for one call
using EventId = Id<struct EventTag>;    // a place in a lane, recorded anew in every step

struct KernelSpent {
  double seconds = 0;  // over all its runs
  i64 runs = 0;
};

struct LaunchError {
  Launch launch;
  std::exception_ptr why;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual bool calls_wait() const { return true; }  // lanes are the calling thread

  // Before step 0.
  // Zeroed, on 2 MiB pages where the system has them, touched: no page fault later. Lives as long as the device.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual KernelId prepare(const Call&) = 0;  // picks the kernel, once
  virtual std::string_view kernel_name(KernelId) const = 0;
  virtual EventId event() = 0;
  virtual void time_kernels(bool on) = 0;

  // Within a step: nothing is allocated, and nothing waits unless calls do.
  virtual void launch(DeviceLane, KernelId, const Args&) = 0;  // Args, and the arrays that they point to, are copied
  virtual void record(EventId, DeviceLane) = 0;                // after all that was launched there
  virtual void wait(DeviceLane, EventId) = 0;  // what follows in the lane runs when the event has come; recorded before

  // Between steps.
  // Waits for all lanes; the step's first fault, if any. Throws what was thrown first in a lane, a kernel's as
  // LaunchError.
  virtual std::optional<KernelFault> finish() = 0;
  virtual void write(std::byte* to, const void* from, std::size_t bytes) = 0;
  virtual void read(void* to, const std::byte* from, std::size_t bytes) const = 0;
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;  // within its memory
  // For a watchdog, from any thread, where calls do not wait: the newest event that has come in the compute lane.
  virtual std::optional<EventId> newest() const { return std::nullopt; }
  virtual double seconds(EventId) const = 0;  // when it came, by the steady clock (base/clock.h)
  virtual KernelSpent spent(KernelId) const = 0;
};

std::unique_ptr<Device> cpu_device(TeamOptions = {});

}  // namespace stretto
