#include "stretto/cost/device_fit.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

std::vector<KernelSample> samples_of(const DeviceModel& d) {
  std::vector<KernelSample> all;
  const Machine m = cluster_of(d, {}).machine;
  const auto add = [&](Cost c) { all.push_back({.work = {.cost = c}, .seconds = kernel_seconds({.cost = c}, m)}); };
  for (double side : {32, 128, 512, 2048})
    for (double other : {64, 1024})
      add({.flops = 2 * side * other * 1024, .read = 4, .shape = ProductShape{.m = side, .n = other, .k = 1024}});
  for (bool backward : {false, true})
    for (double flops : {1e9, 1e10}) {
      AttentionShape a;
      a.backward = backward;
      add({.flops = flops, .read = 4, .shape = a});
    }
  for (double bytes : {64.0, 1e6, 1e8}) add({.read = bytes / 2, .written = bytes / 2});
  return all;
}

TEST(DeviceFit, FindsTheRatesThatMadeTheSamples) {
  DeviceModel d{.f32 = 1e12, .memory_bandwidth = 1e11};
  d.rates = {.product = 0.6, .small = 40, .attention = 0.3, .attention_backward = 0.7, .elements = 1, .kernel = 1e-6};
  const DeviceFit f = fit_device(samples_of(d), {.f32 = 1e12});
  EXPECT_NEAR(f.device.rates.product, 0.6, 0.03);
  EXPECT_NEAR(f.device.rates.small, 40, 4);
  EXPECT_NEAR(f.device.rates.attention, 0.3, 0.01);
  EXPECT_NEAR(f.device.rates.attention_backward, 0.7, 0.02);
  EXPECT_NEAR(f.device.memory_bandwidth, 1e11, 2e9);
  EXPECT_LT(f.products, 0.03);
}

TEST(DeviceFit, NeedsSamplesOfEveryKind) { EXPECT_THROW(fit_device({}, {}), Error); }

}  // namespace
}  // namespace stretto
