#include "stretto/cost/device_fit.h"

#include <algorithm>
#include <cmath>

namespace stretto {
namespace {

constexpr double least_share = 0.001, most_share = 4;  // what a device file may say

double traffic(const KernelSample& s) { return s.work.cost.read + s.work.cost.written; }

template <class Take>
std::vector<KernelSample> only(std::span<const KernelSample> all, Take&& take) {
  std::vector<KernelSample> some;
  for (const KernelSample& s : all)
    if (take(s)) some.push_back(s);
  return some;
}

// Logarithms of predicted over measured.
std::vector<double> offs(std::span<const KernelSample> samples, const Machine& m) {
  std::vector<double> all;
  for (const KernelSample& s : samples) all.push_back(std::log(kernel_seconds(s.work, m) / s.seconds));
  return all;
}
double mean_off(std::span<const KernelSample> samples, const Machine& m) {
  double sum = 0;
  for (double x : offs(samples, m)) sum += std::abs(std::exp(x) - 1);
  return samples.empty() ? 0 : sum / samples.size();
}

// The value of one rate with which the model is neither too fast nor too slow in the mean: it grows with the rate.
double settle(double& rate, std::span<const KernelSample> samples, const Machine& m) {
  double low = least_share, high = most_share;
  for (int i = 0; i < 60; ++i) {
    rate = std::sqrt(low * high);
    double sum = 0;
    for (double x : offs(samples, m)) sum += x;
    (sum > 0 ? low : high) = rate;
  }
  double squares = 0;
  for (double x : offs(samples, m)) squares += x * x;
  return squares;
}

// Both rates of products: for each `small` the best `product`.
void fit_products(std::span<const KernelSample> samples, Machine& m) {
  Rates best = *m.rates;
  double least = INFINITY;
  for (double small = 0; small <= 512; small = small < 8 ? small + 1 : small * 1.1) {
    m.rates->small = small;
    const double off = settle(m.rates->product, samples, m);
    if (off < least) least = off, best = *m.rates;
  }
  *m.rates = best;
}

}  // namespace

DeviceFit fit_device(std::span<const KernelSample> samples, DeviceModel device) {
  const auto of = [](WorkKind kind) { return [kind](const KernelSample& s) { return kind_of(s.work) == kind; }; };
  const auto is_backward = [](const KernelSample& s) {
    const auto* a = std::get_if<AttentionShape>(&s.work.cost.shape);
    return a && a->backward;
  };
  const auto products = only(samples, of(WorkKind::product)), passes = only(samples, of(WorkKind::elements));
  const auto attention = only(samples, of(WorkKind::attention));
  const auto backward = only(attention, is_backward), forward = only(attention, std::not_fn(is_backward));
  if (products.empty() || passes.empty() || forward.empty() || backward.empty())
    throw Error("device", "a fit needs products, attention in both directions and passes over elements")
        .hint("measure them: stretto bench device");
  const KernelSample* shortest = &passes[0];
  device.memory_bandwidth = 1;
  for (const KernelSample& s : passes) {
    if (traffic(s) < traffic(*shortest)) shortest = &s;
    device.memory_bandwidth = std::max(device.memory_bandwidth, traffic(s) / s.seconds);
  }
  device.rates.kernel = shortest->seconds;
  Machine m = cluster_of(device, {}).machine;
  settle(m.rates->elements, passes, m);
  m.rates->elements = std::min(1.0, m.rates->elements);
  fit_products(products, m);
  settle(m.rates->attention, forward, m);
  settle(m.rates->attention_backward, backward, m);
  device.rates = *m.rates;
  return {.device = device,
          .products = mean_off(products, m),
          .attention = mean_off(attention, m),
          .elements = mean_off(passes, m)};
}

}  // namespace stretto
