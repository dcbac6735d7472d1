// The interface to a device: memory, prepared kernels, launches with events. On the CPU an event is complete at once.
//
//   auto device = cpu_device();
//   std::byte* arena = device->allocate(1 << 20);
//   KernelId kernel = device->prepare(kernel_call);          // before step 0
//   device->launch(kernel, {.in = in, .out = out, .scratch = scratch, .now = now});
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "stretto/kernels/kernel.h"

namespace stretto {

using KernelId = Id<struct KernelTag>;  // prepared, for one call

struct Event {
  u64 ticket = 0;  // 0: complete
};

class Device {
 public:
  virtual ~Device() = default;
  // Zeroed, on 2 MiB pages where the system has them, touched: no page fault later. Lives as long as the device.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual KernelId prepare(const Call&) = 0;  // picks the kernel, once
  virtual std::string_view kernel_name(KernelId) const = 0;
  virtual Event launch(KernelId, const Args&) = 0;  // in order
  virtual bool done(Event) = 0;
  virtual double number(const std::byte* at) = 0;  // an f64 of its memory, once everything before has been computed
};

std::unique_ptr<Device> cpu_device();
std::unique_ptr<Device> emulated_device();  // computes nothing

}  // namespace stretto
