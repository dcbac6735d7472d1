// Rates of a device from measured kernels: with which the cost model (kernel.h) comes closest to what they took.
//
//   DeviceFit f = fit_device(samples, {.f32 = peak});
//   fmt::print("products at {:.0f}% of the peak, off by {:.0f}%\n", 100 * f.device.rates.product, 100 * f.products);
#pragma once
#include <span>

#include "stretto/cost/device.h"
#include "stretto/cost/kernel.h"

namespace stretto {

struct KernelSample {
  KernelWork work;
  double seconds = 0;
};
struct DeviceFit {
  DeviceModel device;
  double products = 0, attention = 0, elements = 0;  // by how much the model is off, in the mean
};

// `peaks` gives f32, bf16 and what else no kernel tells. The memory's bandwidth is that of the fastest pass over
// elements, and a kernel's own cost that of the shortest sample.
DeviceFit fit_device(std::span<const KernelSample>, DeviceModel peaks);

}  // namespace stretto
